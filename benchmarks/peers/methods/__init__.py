"""Methods of the peers benchmark: one module per library, found by name in ``benchmarks.peers.catalogue``."""
