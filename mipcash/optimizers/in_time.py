"""Proposals made by the solver, and the fallback when the time is up.

A proposal has the seconds of its request. If they end before the solver has a new configuration,

1. A neighbour of an evaluated configuration is proposed, with other numerical values or else by a legal move over the levels. This
   takes the share FALLBACK of the seconds.
2. If there is no such neighbour, the solver goes on for up to PATIENCE times the seconds (at least FIRST), since a run without a
   proposal would end. Only this step may exceed the time of the proposal.
3. If that finds nothing, an error is raised. It says that the space is exhausted only if that is proven.
"""

from __future__ import annotations

import time

import numpy as np

from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.acquisition.neighbourhood import Neighbourhood
from mipcash.deadline import CUT, Deadline
from mipcash.errors import SolverError, UndecidedError
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.optimizer import Observation, Proposal, Request
from mipcash.program.points import Point
from mipcash.space.domain import Domain

FALLBACK, LEAST_FALLBACK = 0.1, 0.05
"""Share of the seconds for the search for a neighbour, and its minimum in seconds."""
PATIENCE, FIRST = 4.0, 10.0
"""Factor of the seconds for the further search of the solver, and its minimum in seconds."""
BEST, PERTURBATIONS, PAIRS = 8, 4, 200
"""Number of evaluated configurations with neighbours tried; for each, draws of other numbers and random changes of two levels."""


def solver_made(domain: Domain, origin: str, request: Request) -> Proposal:
    """Return a configuration made by the solver, far from earlier proposals. See the module's description for its time.

    Args:
        domain: with the deadline of the proposal.

    Raises:
        SpaceExhaustedError: no configuration is left, or none at the minimum distance.
        UndecidedError: the time is up with neither a new configuration nor a proof that none is left.
    """
    began = time.perf_counter()
    try:
        return _designed(domain, origin, request, began)
    except UndecidedError:
        if request.seconds is None:
            raise
    trace, seconds = {CUT: [origin]}, request.seconds
    config = neighbour(domain.until(Deadline.after(max(LEAST_FALLBACK, FALLBACK * seconds))), request)
    if config is not None:
        took = {"mip": time.perf_counter() - began}
        return Proposal(config, None, "neighbour", took, dict(request.state), trace=trace)
    longer = max(FIRST, PATIENCE * seconds)
    try:
        return _designed(domain.until(Deadline.after(longer)), origin, request, began, cut=True)
    except UndecidedError as error:
        raise UndecidedError(
            f"nothing legal and new was found in space {domain.space.name!r} in the {seconds:g} s of a proposal, nor in up to "
            f"{longer:g} s more, {time.perf_counter() - began:.1f} s in all ({error}); allow more seconds_per_proposal, make the "
            "space smaller, or use another solver"
        ) from error


def _designed(domain: Domain, origin: str, request: Request, began: float, cut: bool = False) -> Proposal:
    config, solution = domain.design(request.rng, request.before, request.min_distance)
    trace = {CUT: [origin]} if cut or domain.deadline.missed else {}
    return Proposal(config, solution, origin, {"mip": time.perf_counter() - began}, dict(request.state), trace=trace)


def sampled(domain: Domain, n: int, rng: np.random.Generator) -> list[Configuration]:
    """Return n legal samples; an empty list if the domain's deadline passes first."""
    try:
        return domain.sample(n, rng)
    except UndecidedError:
        if domain.deadline.endless:
            raise
        return []


def neighbour(domain: Domain, request: Request) -> Configuration | None:
    """Return a new legal configuration close to one of the best evaluated ones; None if none is found in time."""
    reported = [
        (_broken(o, request), np.inf if o.loss is None or o.outcome.pruned else o.loss, k)
        for k, o in enumerate(request.history)
        if o.legal
    ]
    excluded = domain.exclusions(request.before, request.min_distance)
    near = Neighbourhood(domain, excluded, np.zeros(len(domain.program.groups), dtype=np.int64))
    for _, _, k in sorted(reported)[:BEST]:
        point = domain.encode([request.history[k].config])[0]
        for found in (_other_numbers(domain, near, point, request), _other_levels(domain, near, point, request)):
            if found is not None:
                return found
        if domain.deadline.passed:
            break
    return None


def _broken(observation: Observation, request: Request) -> float:
    """Return the total violation of a request's outcome constraints by an observation."""
    return sum(limit.violation(observation.outcome[limit.output].value) for limit in request.limits)


def _other_numbers(domain: Domain, near: Neighbourhood, point: Point, request: Request) -> Configuration | None:
    if not len(domain.scale) or not near.admitted(point.levels[None])[0]:
        return None
    step = ContinuousStep(domain, 0, 0.0)
    for _ in range(PERTURBATIONS):
        found = _new(domain, Point(point.levels, step.perturbed(point, request.rng)), request)
        if found is not None or domain.deadline.passed:
            return found
    return None


def _other_levels(domain: Domain, near: Neighbourhood, point: Point, request: Request) -> Configuration | None:
    """Return a new configuration by legal moves in random order, single moves before pair moves, at the same numerical values."""
    _, singles = near.singles(point.levels[None])
    for latent in (singles, near.pairs(point.levels, PAIRS, request.rng)):
        left = request.rng.permutation(len(latent))
        while len(left) and not domain.deadline.passed:
            levels, legal = near.legal(latent, point.units, left)
            if not legal.any():
                break
            for k in [int(k) for k in left if legal[k]]:
                found = _new(domain, Point(levels[k], point.units), request)
                if found is not None or domain.deadline.passed:
                    return found
            left = left[~legal[left]]
    return None


def _new(domain: Domain, point: Point, request: Request) -> Configuration | None:
    """Return the configuration of a point; None if it is illegal or not new."""
    try:
        config = domain.decode(point)
    except SolverError:  # an evaluated configuration may be illegal, and so may its neighbours
        return None
    return None if domain.repeats(config, request.before) else config
