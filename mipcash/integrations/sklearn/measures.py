"""Costs of using a fitted estimator: times of its predictions, and its size.

* ``latency_ms``: milliseconds to predict BATCH = 1,000 rows at once, which is microseconds per row,
* ``single_ms``: milliseconds to predict one row alone,
* ``model_bytes``: of the fitted estimator, pickled.

A time is the median over at least LEAST calls, and as many more as fit into SPENT seconds, at most MOST. A first call, which fills
caches, does not count, and garbage collection is off. Wall-clock time depends on the machine and on its other load. The clock
``cpu`` measures the CPU time of the process, for machines with other load.
"""

from __future__ import annotations

import gc
import pickle
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
BATCH = 1000
"""Number of rows that are predicted at once."""
LEAST, MOST, SPENT = 5, 50, 0.02


def latency(model: Any, x: Any, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the milliseconds to predict BATCH rows at once.

    Args:
        model: a fitted estimator.
        x: rows of which BATCH are predicted, repeated if there are fewer.
        clock: the current time in seconds.

    Returns:
        The milliseconds.

    Examples:
        >>> from mipcash.integrations.sklearn import measures
        >>> from sklearn.dummy import DummyClassifier
        >>> x = [[0.0], [1.0]]
        >>> measures.latency(DummyClassifier().fit(x, [0, 1]), x) > 0
        True
    """
    rows = _cycled(x, np.arange(BATCH))
    return timed(model.predict, (rows for _ in count()), clock)


def single(model: Any, x: Any, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the milliseconds to predict one row alone; another row each time.

    Args:
        model: a fitted estimator.
        x: rows.
        clock: the current time in seconds.

    Returns:
        The milliseconds.

    Examples:
        >>> from mipcash.integrations.sklearn import measures
        >>> from sklearn.dummy import DummyClassifier
        >>> x = [[0.0], [1.0]]
        >>> measures.single(DummyClassifier().fit(x, [0, 1]), x) > 0
        True
    """
    return timed(model.predict, (_cycled(x, np.array([i])) for i in count()), clock)


def size(model: Any) -> float:
    """Return the size of the pickled estimator in bytes.

    Args:
        model: a fitted estimator, which can be pickled.

    Returns:
        The number of bytes.

    Examples:
        >>> from mipcash.integrations.sklearn import measures
        >>> from sklearn.dummy import DummyClassifier
        >>> measures.size(DummyClassifier().fit([[0.0], [1.0]], [0, 1])) > 100
        True
    """
    return float(len(pickle.dumps(model, protocol=5)))


def timed(call: Callable[[Any], Any], arguments: Iterator[Any], clock: Callable[[], float]) -> float:
    """Return the milliseconds of a call, the median over LEAST to MOST of them after one that does not count.

    Args:
        call: the function, of one argument.
        arguments: one for each call; it must not end.
        clock: the current time in seconds.

    Returns:
        The milliseconds.

    Examples:
        >>> from itertools import repeat
        >>> from time import perf_counter
        >>> from mipcash.integrations.sklearn import measures
        >>> measures.timed(sum, repeat([1, 2, 3]), perf_counter) >= 0
        True
    """
    call(next(arguments))
    collected = gc.isenabled()
    gc.disable()
    try:
        seconds: list[float] = []
        end = time.perf_counter() + SPENT
        while len(seconds) < LEAST or (len(seconds) < MOST and time.perf_counter() < end):
            argument, began = next(arguments), clock()
            call(argument)
            seconds.append(clock() - began)
    finally:
        if collected:
            gc.enable()
    return 1000.0 * statistics.median(seconds)


def _cycled(x: Any, places: Any) -> Any:
    """Return rows of an array, a sparse matrix, a data frame or a list, which begin again after the last."""
    from sklearn.utils import _safe_indexing
    from sklearn.utils.validation import _num_samples

    return _safe_indexing(x, places % _num_samples(x))
