"""The methods of the peers benchmark: one module per library; ``benchmarks.peers.catalogue`` finds them by name."""
