"""Instances of the oracle benchmark: a compiled space, a quadratic form over it, and a legal start.

vae-sized    25 groups, 149 levels; linear terms N(0, 1), a share of the group pairs coupled with N(0, deviation)
bits         dense quadratic forms over bits, all coefficients N(0, 1)
cash         four choices among (8, 11, 7, 11) algorithms, all pairs coupled with N(0, 1)
real         the spaces of ``mipcash.models`` under a draw from MiVaBO's surrogate after some observations
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

import numpy as np

import mipcash as mc
from benchmarks.proxies import proxy
from mipcash.methods.mivabo.mivabo import MiVaBO
from mipcash.optimizers.optimizer import Observation
from mipcash.optimizers.outcome import DONE
from mipcash.program.forms import Indices, QuadraticForm
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled, minimiser_of
from mipcash.space.domain import Domain
from mipcash.space.minimiser import Minimiser

VAE_SIZES = (7, 6, 5) * 8 + (5,)
CASH_SIZES = (8, 11, 7, 11)
STARTS = 8
SOLVER = "auto solver=highs"


@dataclass(frozen=True)
class Instance:
    """One minimisation.

    Attributes:
        family, name: where it belongs, what it is.
        minimiser: of the space, with HiGHS.
        form: folded, over the base columns.
        numbers: natural values at which the numbers in rules are held; None where there are none.
        fixed: the same as base column -> value.
        starts: legal levels to start local search from, as a study has them: its best observations; each of shape (G,).
    """

    family: str
    name: str
    minimiser: Minimiser
    form: QuadraticForm
    numbers: Mapping[str, float] | None
    fixed: Mapping[int, float]
    starts: tuple[Indices, ...]

    @property
    def program(self) -> BinaryProgram:
        return self.minimiser.program


@dataclass(frozen=True)
class Plan:
    """Which instances a size holds."""

    couplings: tuple[tuple[float, float], ...]
    bits: tuple[int, ...]
    cash: int
    observations: tuple[int, ...]
    draws: int


PLANS = {
    "smoke": Plan(((0.05, 1.0),), (12,), 1, (12,), 1),
    "quick": Plan(
        ((0.05, 1.0), (0.15, 1.0), (0.3, 1.0), (0.5, 1.0), (1.0, 1.0), (0.3, 0.1), (0.5, 0.1), (1.0, 0.1)),
        (20, 30, 40),
        2,
        (20, 60, 200),
        2,
    ),
    "full": Plan(
        tuple((c, d) for d in (1.0, 0.3, 0.1) for c in (0.05, 0.15, 0.3, 0.5, 1.0)),
        (20, 30, 40, 50, 60),
        5,
        (20, 60, 200),
        10,
    ),
}


def instances(size: str) -> Iterator[Instance]:
    """The instances of a size, one after the other."""
    plan = PLANS[size]
    space = one_hot_space(VAE_SIZES)
    for coupling, deviation in plan.couplings:
        form = random_form(
            compiled(space).program, coupling, deviation, np.random.default_rng([1, round(100 * coupling)])
        )
        yield _plain(space, f"vae-sized, deviation {deviation:g}", f"{coupling:.0%} coupled", form)
    for bits in plan.bits:
        space = one_hot_space((2,) * bits)
        form = random_form(compiled(space).program, 1.0, 1.0, np.random.default_rng([2, bits]))
        yield _plain(space, "bits", f"{bits} bits", form)
    space = one_hot_space(CASH_SIZES)
    for k in range(plan.cash):
        yield _plain(
            space, "cash", f"draw {k}", random_form(compiled(space).program, 1.0, 1.0, np.random.default_rng([3, k]))
        )
    for name in ("vae", "sklearn_pipeline"):
        for n in plan.observations:
            yield from surrogate_draws(name, n, plan.draws)


def one_hot_space(sizes: tuple[int, ...]) -> mc.Space:
    """Categorical parameters of these sizes, no rules."""
    space = mc.Space("random weights")
    for k, size in enumerate(sizes):
        space.categorical(f"x{k}", [f"v{l}" for l in range(size)])
    return space


def random_form(program: BinaryProgram, coupling: float, deviation: float, rng: np.random.Generator) -> QuadraticForm:
    """Linear terms N(0, 1); a share of the group pairs coupled, exactly, each in full with N(0, deviation)."""
    pairs = list(itertools.combinations(range(len(program.groups)), 2))
    chosen = rng.permutation(len(pairs))[: round(coupling * len(pairs))]
    spans = [np.arange(g.start, g.stop) for g in program.groups]
    grids = [np.meshgrid(spans[pairs[k][0]], spans[pairs[k][1]], indexing="ij") for k in sorted(chosen)]
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *(a.ravel() for a, _ in grids)])
    cols = np.concatenate([np.zeros(0, dtype=np.int64), *(b.ravel() for _, b in grids)])
    return QuadraticForm(0.0, rng.normal(size=program.n), rows, cols, deviation * rng.normal(size=len(rows)))


def _plain(space: mc.Space, family: str, name: str, form: QuadraticForm, start: Indices | None = None) -> Instance:
    if start is None:
        start = np.zeros(len(compiled(space).program.groups), dtype=np.int64)
    return Instance(family, name, minimiser_of(space, SOLVER), compiled(space).program.folded(form), None, {}, (start,))


def surrogate_draws(name: str, observations: int, draws: int) -> Iterator[Instance]:
    """Draws from the surrogate that MiVaBO fits to random legal configurations under an analytic objective."""
    space = import_module(f"mipcash.models.{name}").space
    objective = proxy(space)
    configs = space.sample(observations, seed=observations)
    history = [Observation(c, DONE, objective(c)) for c in configs]
    optimizer = MiVaBO(Domain.of(space, SOLVER))
    rng = np.random.default_rng([4, observations])
    posterior, _ = optimizer._posterior(optimizer.data(history), rng, {})
    best = [o.config for o in sorted(history, key=lambda o: o.loss if o.loss is not None else np.inf)[:STARTS]]
    program = optimizer.program
    for k in range(draws):
        u = optimizer.scale.units(best[:1])[0]
        numbers = optimizer.scale.natural(u) if program.numbers else None
        fixed = {} if numbers is None else {n.latent: numbers[n.label] for n in program.numbers}
        form = program.folded(posterior.sample(rng).form_at(u))
        starts = tuple(program.encode(config) for config in best)
        yield Instance(
            name, f"{observations} observations, draw {k}", optimizer.domain.minimiser, form, numbers, fixed, starts
        )
