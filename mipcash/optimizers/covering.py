"""The initial design goes on until every algorithm that a legal configuration can have was proposed."""

from __future__ import annotations

from mipcash.optimizers.base import Proposal, Request
from mipcash.optimizers.in_time import solver_made
from mipcash.space.coverage import left, points_needed, shows
from mipcash.space.domain import Domain

ORIGIN = "initial design"


def covering(domain: Domain, request: Request, limit: int) -> Proposal | None:
    """A configuration with an algorithm that none before has; None where there is none, or enough were proposed.

    Args:
        domain: with the deadline of the proposal.
        limit: proposals from which on the design has ended, whatever is left.
    """
    program, before = domain.program, request.before
    if len(before) >= min(limit, points_needed(program)):
        return None
    shown = domain.encode(before).levels
    if not left(program, shown):
        return None
    proposal = solver_made(domain, ORIGIN, request)
    return proposal if shows(program, shown, domain.encode([proposal.config]).levels[0]) else None
