"""toulbar2: a program as a cost function network."""
