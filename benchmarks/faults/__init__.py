"""Faults: runs killed at random instants and resumed, and machines and objectives that misbehave."""
