"""Accepted rules: what was learned becomes a rule of the space, once it is checked against what is known to work.

An accepted rule is a rule like any other, with one definition of legal. The declaration remembers which rules were accepted: they
came after a study began, so that its journal goes on with them (:mod:`mipcash.study.records.fingerprint`).
"""

from __future__ import annotations

from typing import Any, Protocol

from mipcash.backends.base import INFEASIBLE
from mipcash.errors import InfeasibleSpaceError, RuleError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration
from mipcash.modelling.rules import Rule
from mipcash.modelling.validation import check
from mipcash.space.compiled import QUESTION, PublicSpace, compiled, declaration_of, minimiser_of
from mipcash.space.conflict import emptiness
from mipcash.space.cuts.proposed import ProposedRule
from mipcash.space.explanation import explained

Works = tuple[tuple[int, Configuration], ...]
"""Numbers and configurations of trials that are known to work."""


class Declaring(PublicSpace, Protocol):
    """A space to which a rule can be added."""

    def __getitem__(self, name: str) -> Any: ...


def accept(space: Declaring, rule: Any, name: str | None) -> Rule:
    """See :meth:`mipcash.Space.accept`."""
    declaration = declaration_of(space)
    works: Works = ()
    if isinstance(rule, ProposedRule):
        rule, name, works = rule.relation(space), rule.name if name is None else name, rule.works
    if name is None:
        raise RuleError("a rule that is accepted needs a name for messages: space.accept(relation, name='short name')")
    made = declaration.rule(name, rule)
    declaration.accepted.append(name)
    try:
        for number, config in works:
            if breaks(declaration, made, config):
                raise RuleError(
                    f"rule {name!r} is not accepted: it forbids the configuration of trial {number}, which works, {config}; "
                    "ask study.proposed_rules() again, of all that is known by now"
                )
        _check_not_empty(space, name, works)
    except BaseException:
        declaration.withdraw(name)
        raise
    return made


def withdraw(space: PublicSpace, name: str) -> None:
    """See :meth:`mipcash.Space.withdraw`."""
    declaration = declaration_of(space)
    if name not in declaration.accepted:
        there = f"accepted are {', '.join(map(repr, declaration.accepted))}" if declaration.accepted else "none was"
        raise RuleError(f"space {declaration.name!r} has no accepted rule {name!r} to withdraw; {there}")
    declaration.withdraw(name)


def breaks(declaration: Declaration, rule: Rule, config: Configuration) -> bool:
    """Whether a configuration that is right but for rules breaks this one, by the definition of legal."""
    return any(v.name == rule.name for v in check(declaration, config, rule.parts or (rule,)).violations)


def accepted_rules(space: PublicSpace) -> tuple[Rule, ...]:
    """The rules that were accepted, in that order."""
    declaration = declaration_of(space)
    return tuple(declaration.rules[name] for name in declaration.accepted)


def broken_of(space: PublicSpace, config: Configuration) -> list[str]:
    """Names of the accepted rules that a configuration breaks."""
    declaration = declaration_of(space)
    return [name for name in declaration.accepted if breaks(declaration, declaration.rules[name], config)]


def legal_but_for_accepted(space: PublicSpace, config: Configuration) -> bool:
    """Whether a configuration breaks no rule but accepted ones."""
    now, accepted = compiled(space), declaration_of(space).accepted
    return not check(now.declaration, config, [r for r in now.rules if r.name not in accepted]).violations


def _check_not_empty(space: PublicSpace, name: str, works: Works) -> None:
    """Refuse a rule that leaves nothing; what works and is legal proves that something is left.

    Raises:
        InfeasibleSpaceError: nothing is.
    """
    now, backend = compiled(space), minimiser_of(space).backend
    if any(not now.violations(config) for _, config in works):
        return
    if emptiness(now.program, backend, QUESTION).status == INFEASIBLE:
        why = explained(now, backend, empty=True)
        raise InfeasibleSpaceError(f"rule {name!r} is not accepted: with it {why}")
