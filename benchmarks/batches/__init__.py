"""Evaluations in batches against evaluations one at a time, for ours and for the peers (see :mod:`benchmarks.batches.runner`)."""
