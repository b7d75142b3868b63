"""The peers benchmark: optimizers of other libraries against ours, on mixed spaces with and without rules."""

from benchmarks.peers import benchmark as _benchmark

__all__: list[str] = []
_benchmark  # noqa: B018 - importing it registers the benchmark
