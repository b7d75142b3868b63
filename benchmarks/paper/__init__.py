"""The experiments of Daxberger et al., "Mixed-variable Bayesian optimization", run again."""

from benchmarks.paper import benchmark as _benchmark

__all__: list[str] = []
_benchmark  # noqa: B018 - importing it registers the benchmarks
