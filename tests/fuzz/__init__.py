"""The fuzzing harness: a sample of its spaces, and proofs that it is right and that it can fail."""
