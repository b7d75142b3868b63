"""Calls of the objective: here, in threads, in executors."""
