"""Decoupled evaluation: the choice of the configuration and output to evaluate next, as the default optimizer makes it.

Notation
    x            a configuration of which some outputs are not known: partially evaluated, or newly proposed by the search
    p_i          probability that x satisfies outcome constraint i;   p_loss that its evaluation succeeds and improves the incumbent
    c_i, c_loss  the costs of their outputs
    EI           expected improvement of the loss at x

The gain of x is G = EI prod p_i over the outputs that are not known, and 0 if a constraint is violated. While no feasible
observation is known, EI = 1 and p_loss = 1.

Outputs are evaluated one after the other, as long as x may still be an improvement. The expected cost of x is minimal in the order
of c / (1 - p) (Mitten 1960):

    C = sum_k c_k prod_{j before k} p_j

The next evaluation is of the x with the largest G / C. It evaluates the first output in that order, and the outputs after it whose
cost is negligible. With outcome constraints at 1/60 of the cost of the loss, the constraints are evaluated first. At equal costs
the loss is, if an improvement is unlikely. A configuration that violates a constraint or is no improvement is not evaluated
further. The search for a new x also minimises the acquisition per expected cost (``mipcash.optimizers.decoupled``).

The initial design begins with the outcome constraints if these cost less together than the loss. Before any improvement is
predicted, some losses are evaluated at configurations that are feasible or violate the constraints least.

Constrained expected improvement per expected cost, with outcome constraints evaluated before the loss; to be minimised.

Notation
    i = 1..m      outcome constraints whose outputs are evaluated before the rest, in this order;   c_i their costs
    r             cost of the rest, with the loss, which is evaluated only if constraints 1..m are satisfied
    P_i           probability that constraint i is satisfied

    expected cost   C = sum_i c_i P_1 .. P_{i-1} + r P_1 .. P_m
    per cost        acquisition + log C,     d log C / d log P_i = (terms of C after the i-th) / C

If r is much larger than c, C is about r P, so a configuration that is probably infeasible costs little, and the improvement alone
decides. If the outputs are evaluated together, C is constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from mipcash.acquisition.acquisition import Acquisition, SumAcquisition
from mipcash.acquisition.analytic import AnalyticAcquisition, LogEI
from mipcash.acquisition.catalogue import AcquisitionInputs
from mipcash.acquisition.constrained import Limited
from mipcash.errors import SpaceExhaustedError
from mipcash.optimizers.data import Data
from mipcash.optimizers.model_based import shown
from mipcash.optimizers.optimizer import History, Limit, Observation, Proposal, Request
from mipcash.optimizers.outcome import LOSS, MISSING, PENDING
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.space.domain import Domain
from mipcash.surrogates.protocols import Section


def expected_costs(log_p: Vector, costs: Vector, rest: float) -> tuple[Vector, Vector]:
    """Return log C and its derivatives with respect to log P_i.

    Args:
        log_p: log P_i, shape (m, B).
        costs: c_i, shape (m,).
        rest: r.

    Returns:
        (B,) and (m, B).
    """
    b = log_p.shape[1]
    reached = np.exp(np.vstack([np.zeros((1, b)), np.cumsum(log_p, axis=0)]))
    terms = np.append(costs, rest)[:, None] * reached
    total = terms.sum(axis=0)
    after = np.cumsum(terms[::-1], axis=0)[::-1][1:]
    return np.log(total), after / total


@dataclass(frozen=True)
class LogCost:
    """log C.

    Attributes:
        limits: m outcome constraints, in the order in which they are evaluated.
        costs: c_i, shape (m,).
        rest: r.
    """

    limits: Sequence[Limited]
    costs: Vector
    rest: float

    def values(self, points: Points) -> Vector:
        """Return log C at a batch: shape (B,)."""
        log_p = [kept.interval.log_probability(*kept.posterior.predict(points)) for kept in self.limits]
        return expected_costs(np.array(log_p), self.costs, self.rest)[0]

    def section(self, z: Vector) -> Section:
        """Return log C at fixed binaries, (n_z,)."""
        sections = [(kept.posterior.section(z), kept.interval) for kept in self.limits]

        def at(u: Vector) -> tuple[float, Vector]:
            log_p, slopes = np.zeros((len(sections), 1)), np.zeros((len(sections), len(u)))
            for k, (moments, interval) in enumerate(sections):
                mean, deviation, by_mean, by_deviation = moments(u)
                log_p[k], first, second = interval.slope(mean, deviation)
                slopes[k] = first * by_mean + second * by_deviation
            value, by_log = expected_costs(log_p, self.costs, self.rest)
            return float(value[0]), by_log[:, 0] @ slopes

        return at


NEGLIGIBLE = 0.1
"""Share of the cost of all unknown outputs of a configuration up to which outputs are evaluated together."""
LOSSES = 3
"""Number of losses to evaluate before an improvement is predicted."""


def in_parts(
    propose: Callable[[Request], Proposal],
    learn: Callable[[History, Sequence[Limit]], Data],
    request: Request,
    domain: Domain,
    n_initial: int,
) -> Proposal:
    """Return the next proposal under decoupled evaluation.

    In turn: the initial design, for the outputs it begins with; the first losses; proposals of ``propose``; and, once the space is
    exhausted, the missing outputs of partially evaluated configurations.

    Args:
        propose: proposes a new or a partially evaluated configuration.
        learn: builds the data of a history.
        n_initial: size of the initial design.

    Raises:
        SpaceExhaustedError: ``propose`` raised it, and no partially evaluated configuration is left.
    """
    if not decoupled(request):
        return propose(request)
    data = learn(request.history, request.limits)
    if shown(request.history) >= n_initial and few_losses(data, request):
        rows = [k for k in partial(data, request, domain, broken=True) if math.isfinite(data.violations[k])]
        lossless = [(data.violations[k], k) for k in rows if data.observations[k].outcome[LOSS].status == MISSING]
        if lossless:
            return _continued(data.observations[min(lossless)[1]], _with_loss(request), request.state)
    try:
        proposal = propose(request)
    except SpaceExhaustedError:
        sure = data.feasible & data.complete
        best = data.losses[data.known[sure[data.known]]].min(initial=math.inf)
        for o in (data.observations[k] for k in partial(data, request, domain)):
            if o.loss is None or o.loss < best:
                return _continued(o, o.outcome.missing(tuple(request.costs)), request.state)
        raise
    return proposal if proposal.outputs else replace(proposal, outputs=design_outputs(request))


def partial(data: Data, request: Request, domain: Domain, broken: bool = False) -> list[int]:
    """Return the rows of partially evaluated configurations whose missing outputs may be worth an evaluation.

    They are legal, none of their outputs failed or is pending, and they keep the batch's minimum distance.

    Args:
        broken: include configurations that are known to violate an outcome constraint.
    """
    busy = {repr(o.config) for o in request.pending}
    names = (LOSS, *(limit.output for limit in request.limits))
    near = domain.exclusions([], request.min_distance)

    def fits(k: int, o: Observation) -> bool:
        kept = broken or not any(_broken(o, limit) for limit in request.limits)
        waits = kept and o.legal and not data.failed[k] and bool(o.outcome.missing(names))
        return waits and repr(o.config) not in busy and all(e.admits(data.points.levels[k]) for e in near)

    return [k for k, o in enumerate(data.observations) if fits(k, o)]


def design_outputs(request: Request) -> tuple[str, ...]:
    """Return the outputs evaluated in the initial design: the constrained ones if they cost less than the loss, else all."""
    limits = _limited(request)
    return limits if sum(request.costs[name] for name in limits) < request.costs[LOSS] else tuple(request.costs)


def few_losses(data: Data, request: Request) -> bool:
    """Return True if the known and pending losses are too few to predict an improvement."""
    awaited = sum(LOSS in (o.asked or (LOSS,)) and o.outcome[LOSS].status == MISSING for o in request.pending)
    return awaited + sum(o.outcome[LOSS].status != MISSING for o in data.observations) < LOSSES


def decoupled(request: Request) -> bool:
    """Return True if evaluation is decoupled and an output other than the loss has an outcome constraint."""
    return bool(request.costs) and bool(_limited(request))


def per_cost(acquisition: Acquisition, fitted: AcquisitionInputs, request: Request) -> Acquisition:
    """Return the acquisition per expected cost; unchanged if no constrained output is cheaper than the loss."""
    if not decoupled(request):
        return acquisition
    costs, limited = request.costs, _limited(request)
    cheap = sorted((n for n in fitted.limited if n in limited and costs[n] < costs[LOSS]), key=lambda n: costs[n])
    if not cheap:
        return acquisition
    rest = sum(cost for name, cost in costs.items() if name not in cheap)
    return SumAcquisition(
        acquisition, LogCost([fitted.limited[n] for n in cheap], np.array([costs[n] for n in cheap]), rest)
    )


def chosen(proposal: Proposal, fitted: AcquisitionInputs, data: Data, request: Request, domain: Domain) -> Proposal:
    """Return the evaluation with the largest gain per cost: outputs of the proposal, or of a partially evaluated configuration."""
    if not decoupled(request):
        return proposal
    limits = _limited(request)
    if not any(name in fitted.limited for name in limits):  # the only constraints are on the loss, or without data
        return proposal
    rows, new = partial(data, request, domain), Observation(proposal.config, PENDING)
    seen = [*(data.observations[k] for k in rows), new]
    points = Points.joined(data.points[rows], domain.encode([proposal.config]))
    log_gain, passes = predicted(seen, points, fitted, limits)
    best, at, outputs = -math.inf, len(seen) - 1, tuple(request.costs)
    for k, o in enumerate(seen):
        cost, order = sequence({name: p[k] for name, p in passes.items() if o.outcome[name].status == MISSING}, request)
        index = log_gain[k] - math.log(cost)
        if index >= best:
            best, at, outputs = index, k, first_of(order, request)
    trace = {**proposal.trace, "partial": len(rows), "log gain per cost": best}
    if seen[at] is new:
        return replace(proposal, outputs=outputs, trace=trace)
    return replace(_continued(seen[at], outputs, proposal.state), seconds=proposal.seconds, trace=trace)


def predicted(
    seen: Sequence[Observation], points: Points, fitted: AcquisitionInputs, limits: Collection[str]
) -> tuple[Vector, dict[str, Vector]]:
    """Return log G, (B,), and by output the probability p that its value does not rule out an improvement, (B,)."""
    some = math.isfinite(fitted.best)
    mu, sd = fitted.loss.predict(points)
    log_gain = -AnalyticAcquisition(fitted.loss, LogEI(fitted.best)).values(points) if some else np.zeros(len(points))
    passes = {LOSS: np.asarray(ndtr((fitted.best - mu) / sd)) if some else np.ones(len(points))}
    for name, each in fitted.limited.items():
        log_p = each.interval.log_probability(*each.posterior.predict(points))
        if name in limits:
            known = np.array([o.outcome[name].status != MISSING for o in seen])
            passes[name] = np.where(known, 1.0, np.exp(log_p))
        else:  # a constraint on the loss itself, or the failure model
            known = np.array([o.loss is not None for o in seen])
            passes[LOSS] = passes[LOSS] * np.where(known, 1.0, np.exp(log_p))
        log_gain = log_gain + np.where(known, 0.0, log_p)
    for name in [n for n in limits if n not in fitted.limited]:  # no data yet
        passes[name] = np.full(len(points), 0.5)
    return log_gain, passes


def sequence(passes: Mapping[str, float], request: Request) -> tuple[float, list[str]]:
    """Return the minimal expected cost of evaluating outputs one after the other, and the order that attains it.

    Args:
        passes: for each unknown output, the probability that evaluation continues after it.
    """
    price = {name: _price(name, request) for name in passes}
    order = sorted(passes, key=lambda n: price[n] / max(1e-12, 1.0 - passes[n]))
    cost, reached = 0.0, 1.0
    for name in order:
        cost += price[name] * reached
        reached *= passes[name]
    return cost, order


def first_of(order: Sequence[str], request: Request) -> tuple[str, ...]:
    """Return the first output of an order, with the outputs after it while their total cost is negligible."""
    left = NEGLIGIBLE * sum(_price(name, request) for name in order)
    count = 1
    while count < len(order) and sum(_price(name, request) for name in order[: count + 1]) <= left:
        count += 1
    return tuple(each for name in order[:count] for each in (_with_loss(request) if name == LOSS else (name,)))


def _price(name: str, request: Request) -> float:
    """Return the cost of an output. Outputs without an outcome constraint are evaluated with the loss."""
    return sum(request.costs[each] for each in (_with_loss(request) if name == LOSS else (name,)))


def _with_loss(request: Request) -> tuple[str, ...]:
    limited = _limited(request)
    return tuple(name for name in request.costs if name not in limited)


def _limited(request: Request) -> tuple[str, ...]:
    """Return the outputs other than the loss that have outcome constraints."""
    return tuple(dict.fromkeys(limit.output for limit in request.limits if limit.output != LOSS))


def _broken(observation: Observation, limit: Limit) -> bool:
    output = observation.outcome[limit.output]
    return output.status != MISSING and limit.violation(output.value) > 0.0


def _continued(observation: Observation, outputs: Sequence[str], state: Mapping[str, object]) -> Proposal:
    return Proposal(dict(observation.config), None, "continued", state=dict(state), outputs=tuple(outputs))
