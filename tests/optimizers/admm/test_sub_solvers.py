"""Solvers of ADMM's subproblems beside the first ones: each gets near a minimum, keeps its protocol, and says what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mipcash.methods.admm.rewards import reward
from mipcash.methods.admm.solvers import OneHotBO
from mipcash.methods.admm.theta_min import ThetaMin, ThetaProblem
from mipcash.methods.admm.z_min import ZMin, ZProblem
from mipcash.program.forms import Indices, Vector


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As optimizers have it: small matrices gain nothing from more."""
    with threadpool_limits(1):
        yield


CENTRE = np.array([0.3, 0.8])


def theta_problem(x: Vector, f: Vector, own: Any = (), **changes: Any) -> ThetaProblem:
    d = x.shape[1]
    made = ThetaProblem(
        x=x,
        f=f,
        own=np.array(own, dtype=np.int64),
        waiting=np.zeros((0, d)),
        stiffness=np.zeros(d),
        centre=np.zeros(d),
        start=np.full(d, 0.5),
        levels=np.zeros(d, dtype=np.int64),
        rng=np.random.default_rng(len(x)),
    )
    return replace(made, **changes)


def bowl(x: Vector) -> float:
    return float(((x - CENTRE) ** 2) @ [1.0, 3.0])


def solved(solver: ThetaMin, asks: int, f: Callable[[Vector], float] = bowl, d: int = 2) -> tuple[Vector, Vector]:
    """Rows and values after some asks."""
    x, y, memory = np.zeros((0, d)), np.zeros(0), {}
    for _ in range(asks):
        answer = solver(theta_problem(x, y, range(len(x)), memory=memory))
        if not len(answer.x):
            break
        assert ((answer.x >= 0) & (answer.x <= 1)).all()
        x, memory = np.concatenate([x, answer.x[:1]]), dict(answer.memory)
        y = np.append(y, f(answer.x[0]))
    return x, y


class Free:
    """All choices are legal, or those that a function allows."""

    def __init__(self, sizes: list[int], legal: Callable[[Indices], bool] = lambda z: True) -> None:
        grid = np.array(np.meshgrid(*(range(n) for n in sizes), indexing="ij")).reshape(len(sizes), -1).T
        self.sizes, self.z = np.array(sizes), np.array([z for z in grid if legal(z)], dtype=np.int64)

    def argmax(self, weights: Vector) -> Indices:
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        return np.asarray(self.z[int(np.argmax(weights[starts + self.z].sum(axis=1)))])

    def every(self, limit: int) -> Indices | None:
        return self.z if len(self.z) <= limit else None


def chosen(solver: ZMin, oracle: Free, f: Callable[[Indices], float], pulls: int) -> list[float]:
    z, values, memory = np.zeros((0, len(oracle.sizes)), dtype=np.int64), np.zeros(0), {}
    for k in range(pulls):
        arms = int(oracle.sizes.sum())
        problem = ZProblem(
            sizes=oracle.sizes,
            z=z,
            values=values,
            waiting=z[:0],
            counts=np.zeros(arms),
            rewards=np.zeros(arms),
            prior=1.0,
            oracle=oracle,
            rng=np.random.default_rng(k),
            memory=memory,
        )
        pull = solver(problem)
        assert pull.z is not None
        assert any((pull.z == row).all() for row in oracle.z)
        z, memory = np.concatenate([z, pull.z[None]]), dict(pull.memory)
        values = np.append(values, f(pull.z))
    return values.tolist()


def test_bayesian_optimization_of_choices_beats_draws() -> None:
    rng = np.random.default_rng(3)
    best = {"bo": 0, "random": 0}
    for _ in range(3):
        worth = [rng.normal(size=n) for n in (6, 7, 5)]
        oracle = Free([6, 7, 5], legal=lambda z: z[0] != z[1])

        def f(z: Indices, worth: list[Vector] = worth) -> float:
            return float(sum(w[k] for w, k in zip(worth, z, strict=True)))

        bo = min(chosen(OneHotBO(), oracle, f, 20))
        drawn = min(f(oracle.z[k]) for k in rng.choice(len(oracle.z), 20, replace=False))
        best["bo" if bo < drawn else "random"] += bo != drawn
    assert best["bo"] > best["random"]


def test_choices_are_used_up() -> None:
    oracle = Free([2, 2])
    values = chosen(OneHotBO(), oracle, lambda z: float(z.sum()), 6)
    assert set(values) == {0.0, 1.0, 2.0}


def test_rewards_by_a_quantile() -> None:
    known = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 50.0])
    assert [reward(v, known, "rank") for v in (1.0, 3.0, 50.0)] == pytest.approx([5.5 / 6, 3.5 / 6, 0.5 / 6])
    assert reward(1.0, known, "quantile") == 1.0
    assert reward(50.0, known, "quantile") == 0.0
    assert 0.9 < reward(3.0, known, "quantile") < 1.0
    assert [reward(v, known, 0.5) for v in (0.0, 0.1, 3.0)] == pytest.approx([1.0, 0.8, 0.0])
    assert reward(1.0, known, 10.0, unit=5.0) == pytest.approx(0.5)  # a loss of 5 where 10 earns nothing
    assert reward(2.0, np.array([2.0]), "quantile") == 1.0
