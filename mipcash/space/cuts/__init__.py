"""Learned cuts: settings that fail together, and how they become a rule of a space."""
