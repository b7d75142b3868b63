"""A study that several processes or machines write to: who is alive, what is new, and who was first."""
