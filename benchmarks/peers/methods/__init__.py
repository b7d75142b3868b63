"""The methods of the peers benchmark: one module per library; ``benchmarks.peers.method`` finds them by name."""
