"""Outputs of one configuration that were evaluated apart: put together for models and for the answer."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import mipcash as mc
from mipcash.optimizers.data import Data
from mipcash.optimizers.optimizer import Limit, Observation, joined
from mipcash.optimizers.outcome import Outcome, Output
from mipcash.optimizers.random import RandomSearch
from mipcash.space.domain import Domain

LIMITS = (Limit("ms", high=5.0), Limit("size", high=2.0))
NAMES = ("loss", "ms", "size")


def space_of_one() -> mc.Space:
    space = mc.Space("line")
    space.integer("n", 0, 9)
    return space


def seen(n: int, status: str = "done", known: bool = False, **outputs: float | str) -> Observation:
    """Numbers are present, texts are why an output failed."""
    told = {k: Output.of(v) if not isinstance(v, str) else Output("failed", message=v) for k, v in outputs.items()}
    outcome = Outcome(told)
    return Observation({"n": n}, status, outcome.loss, outcome.values, outcome, known)


def test_observations_of_one_configuration_are_joined() -> None:
    history = [
        seen(0, loss=1.0, ms=9.0, size=1.0),
        seen(1, ms=3.0),
        seen(2, ms=4.0),
        seen(1, size=1.0),
        seen(2, size=3.0),
        seen(1, loss=2.0),
        seen(3, loss=0.5),
    ]
    data = Data.of(Domain.of(space_of_one()), history, LIMITS)
    assert [o.config["n"] for o in data.observations] == [0, 2, 1, 3]  # by the latest part
    assert list(data.known) == [0, 2, 3]
    assert list(data.feasible) == [False, False, True, False]
    assert data.violations[3] == math.inf
    assert list(data.order) == [2, 0, 3]
    assert [list(part) for part in data.values("ms")] == [[0, 1, 2], [9.0, 4.0, 3.0]]
    assert not data.failed.any()


def test_a_failed_output_is_one_of_the_row() -> None:
    history = [seen(1, ms=3.0), seen(1, "failed", loss="crashed"), seen(1, size=1.0), seen(2, "failed", ms="no clock")]
    data = Data.of(Domain.of(space_of_one()), history, LIMITS)
    assert [(o.status, o.loss) for o in data.observations] == [("failed", None), ("failed", None)]
    assert list(data.failed) == [True, True]
    assert not len(data.known)


def test_the_same_output_again_is_another_measurement() -> None:
    history = [seen(1, ms=3.0, loss=1.0, size=1.0), seen(1, ms=6.0), seen(1, loss=0.5)]
    rows = joined(history, NAMES)
    assert [row.parts for row in rows] == [(0,), (1, 2)]
    assert rows[0].whole is history[0]
    assert rows[1].whole.outcome["ms"].value == 6.0
    told = [seen(n % 2, loss=float(n)) for n in range(4)]
    assert all(row.whole is told[k] for k, row in enumerate(joined(told, NAMES)))


def test_the_answer_is_known_to_keep_all_limits() -> None:
    optimizer = RandomSearch(Domain.of(space_of_one()))
    history = [seen(1, loss=1.0), seen(2, loss=3.0), seen(2, ms=4.0), seen(1, ms=4.0), seen(3, loss=0.0, ms=1.0)]
    assert optimizer.recommend(history, LIMITS) is None
    history.append(seen(2, size=1.0))
    assert optimizer.recommend(history, LIMITS) is history[1]  # the one that tells the loss
    history.append(seen(1, size=1.0))
    assert optimizer.recommend(history, LIMITS) is history[0]
    assert optimizer.recommend(history, ()) is history[4]


PART = st.tuples(st.integers(0, 3), st.permutations(NAMES), st.integers(1, 2))


@settings(max_examples=15, deadline=None)
@given(st.lists(PART, min_size=1, max_size=4, unique_by=lambda p: p[0]), st.randoms(use_true_random=False))
def test_the_order_of_the_parts_does_not_matter(given: list[tuple[int, list[str], int]], random: object) -> None:
    """However a configuration's outputs are spread over evaluations, models learn what one evaluation of all would tell."""
    values = {n: {"loss": 1.0 + n, "ms": 3.0 + n, "size": 1.0 + n / 2} for n in range(4)}
    parts = [
        seen(n, **{name: values[n][name] for name in chunk})
        for n, names, cut in given
        for chunk in (names[:cut], names[cut:])
    ]
    random.shuffle(parts)  # type: ignore[attr-defined]
    domain = Domain.of(space_of_one())
    apart = Data.of(domain, parts, LIMITS)
    order = list(dict.fromkeys(reversed([o.config["n"] for o in parts])))[::-1]
    together = Data.of(domain, [seen(n, **values[n]) for n in order], LIMITS)
    for name in ("losses", "known", "failed", "violations", "order", "feasible", "merits"):
        assert np.array_equal(getattr(apart, name), getattr(together, name)), name
    assert np.array_equal(apart.points.levels, together.points.levels)
    answer, whole = (RandomSearch(domain).recommend(h, LIMITS) for h in (parts, together.observations))
    assert (answer and answer.config) == (whole and whole.config)
