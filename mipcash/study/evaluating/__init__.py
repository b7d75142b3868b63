"""Calls of the objective: in the calling thread, in threads, in processes and in executors."""
