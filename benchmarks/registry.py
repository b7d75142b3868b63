"""Registry of benchmarks: a module of this package, or the module ``benchmark`` of a folder, decorates its function
``run`` and defines ``markdown``.

@benchmark("peers", "optimizers of other libraries against ours")
def run(size: str, progress: Callable[[str], None]) -> dict: ...      # size: smoke, quick or full

def markdown(results: dict) -> str: ...                              # the table for the page of results
"""

from __future__ import annotations

import pkgutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

Results = dict[str, Any]
Progress = Callable[[str], None]
Run = Callable[[str, Progress], Results]

SIZES = ("smoke", "quick", "full")
"""Sizes. smoke: seconds, in tests. quick: minutes, for a table. full: hours, for a claim."""


@dataclass(frozen=True)
class Benchmark:
    """Registered benchmark.

    Attributes:
        out: where the record of a quick or full run goes; None: ``benchmarks/results/NAME.json``.
        gather: returns the results of kept runs; None: the module's function ``collected``, if it has one.
    """

    name: str
    summary: str
    run: Run
    out: Path | None = None
    gather: Callable[[], Results] | None = None

    def markdown(self, results: Results, figures: str = "") -> str:
        """Return the results as a table, by the module's own ``markdown``.

        Args:
            figures: folder of its figures as seen from the page, for a ``markdown`` that takes one.
        """
        made = sys.modules[self.run.__module__].markdown
        return str(made(results, figures) if "figures" in signature(made).parameters else made(results))

    @property
    def collected(self) -> Callable[[], Results] | None:
        """Return the function that returns the results of kept runs, or None."""
        made: Callable[[], Results] | None = self.gather or getattr(sys.modules[self.run.__module__], "collected", None)
        needed = [p for p in signature(made).parameters.values() if p.default is p.empty] if made else []
        return None if needed else made


_KNOWN: dict[str, Benchmark] = {}


def timed() -> Progress:
    """Return a function that prints a text with the seconds since this call."""
    began = time.perf_counter()
    return lambda text: print(f"[{time.perf_counter() - began:8.1f} s] {text}", file=sys.stderr, flush=True)


def results_of(cell: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Yield the result of each task as it ends, in so many processes; 0: here, in order."""
    if not workers:
        yield from (cell(*task) for task in tasks)
        return
    with ProcessPoolExecutor(workers) as pool:
        for done in as_completed([pool.submit(cell, *task) for task in tasks]):
            yield done.result()


def benchmark(
    name: str, summary: str, out: Path | None = None, gather: Callable[[], Results] | None = None
) -> Callable[[Run], Run]:
    """Register a run under a name."""

    def register(run: Run) -> Run:
        if name in _KNOWN and _KNOWN[name].run.__module__ != run.__module__:
            raise ValueError(f"benchmark {name!r} is registered twice; give one of them another name")
        _KNOWN[name] = Benchmark(name, summary, run, out, gather)
        return run

    return register


def benchmarks() -> dict[str, Benchmark]:
    """Return all benchmarks of this package by name, from its modules and from ``benchmark`` modules of its folders."""
    package = import_module("benchmarks")
    for found in pkgutil.iter_modules(package.__path__):
        name = f"benchmarks.{found.name}" + (".benchmark" if found.ispkg else "")
        if not found.name.startswith("_") and find_spec(name) is not None:
            import_module(name)
    return dict(sorted(_KNOWN.items()))
