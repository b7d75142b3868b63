"""Limits that the fits of a process share: one thread each for small tables, and no warnings.

Both hold for the whole process while any thread fits, since neither ``warnings.catch_warnings`` nor ``threadpoolctl`` is limited to
a thread: of two evaluations in threads, the one that ends last would restore what the first one set.
"""

from __future__ import annotations

import math
import threading
import warnings
from typing import Any

FEW_CELLS = 1_000_000
"""Rows times columns up to which a fit takes one thread."""


class Shared:
    """A context that begins with the first thread that enters and ends with the last that leaves."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._open: Any = None

    def _made(self) -> Any:
        """Return a context manager that has been entered; None: nothing is to be done."""
        raise NotImplementedError

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._open = self._made()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._open is not None and not self._inside:
                self._open.__exit__(None, None, None)
                self._open = None


class FewThreads(Shared):
    """Limits BLAS and OpenMP to one thread for fits to a small table, where threads wait for each other longer than they work.

    Histogram gradient boosting on 178 rows takes 0.26 s with one thread, and 20 s with two on two busy cores.

    Args:
        small: whether the table is small; otherwise there is no limit.
    """

    def __init__(self, small: bool) -> None:
        super().__init__()
        self._small = small

    @classmethod
    def of(cls, x: Any) -> FewThreads:
        """Return the limit for rows of features; up to FEW_CELLS cells are a small table."""
        return cls(math.prod(x.shape if hasattr(x, "shape") else (len(x), 1)) <= FEW_CELLS)

    def __reduce__(self) -> tuple[Any, ...]:
        return FewThreads, (self._small,)

    def _made(self) -> Any:
        from threadpoolctl import threadpool_limits

        return threadpool_limits(1) if self._small else None


class Silence(Shared):
    """Suppresses warnings."""

    def _made(self) -> Any:
        made = warnings.catch_warnings()
        made.__enter__()
        warnings.simplefilter("ignore")
        return made


SILENT = Silence()
"""The only one, as there is one list of filters in a process. Constant columns or missing convergence show in the score."""
