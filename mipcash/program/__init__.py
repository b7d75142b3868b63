"""A declaration compiled: one-hot binaries, sparse rows, products, legality of levels, the unit scale of the numbers."""
