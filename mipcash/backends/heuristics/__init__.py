"""Incumbents without proof: local search and tabu search over legal moves."""
