"""What a user brings to a study: evaluations made elsewhere, and configurations to be evaluated next. From them to rows.

Both are trials that no optimizer proposed; their origin says what they are. A configuration is held to the space first: its
values to their domains and to what is active, then to the rules. What breaks rules alone has a place in every model of the space,
and may be learned from; what lies outside a domain has none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mipcash.errors import ConfigurationError
from mipcash.modelling.domains import Configuration
from mipcash.optimizers.goals import MINIMISED, Goals
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import MISSING, PENDING, Outcome
from mipcash.space.compiled import compiled
from mipcash.space.novelty import repeats
from mipcash.study.reading import read_outcome, statement
from mipcash.study.records.encoding import encode_config, misplaced, readable_config
from mipcash.study.records.telling import completed
from mipcash.study.storage.protocol import EvaluationRow, TrialRow
from mipcash.study.text import shown
from mipcash.study.trial import ENQUEUED, ILLEGAL, KNOWN, Trial, repeat_origin

if TYPE_CHECKING:
    from mipcash.space.space import Space

REFUSE, LEARN = "refuse", "learn"
"""What becomes of an evaluation whose configuration breaks rules."""

KnownGiven = Sequence[tuple[Configuration, Any]]
"""Pairs of a configuration and its outcome."""


@dataclass(frozen=True)
class Known:
    """An evaluation that was made elsewhere.

    Attributes:
        config: as the space has it: declared order, plain values.
        outcome: what came of it.
        legal: whether the rules admit the configuration.
        outputs: what was evaluated, where outputs are evaluated apart; else empty.
    """

    config: Configuration
    outcome: Outcome
    legal: bool
    outputs: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        space: Space,
        config: Any,
        outcome: Any,
        illegal: str = REFUSE,
        what: str = "the configuration",
        apart: Sequence[str] = (),
        limits: Sequence[Limit] = (),
        goals: Goals = MINIMISED,
    ) -> Known:
        """Arguments as of :meth:`mipcash.Study.add`; ``what`` is what messages call it.

        Args:
            apart: outputs that may be evaluated apart, of which the outcome may be a part; empty: it has the loss.
            limits: on outputs, which may be missing, and are numbers where they are not.

        Raises:
            ConfigurationError: illegal, and not to be learned from.
            ValueError: no outcome, or ``illegal`` is neither ``refuse`` nor ``learn``.
        """
        if illegal not in (REFUSE, LEARN):
            raise ValueError(f"illegal must be {REFUSE!r} or {LEARN!r}, got {shown(illegal)}")
        if problems := misplaced(space, config):
            raise ConfigurationError(
                f"{what} has no place in space {space.name!r}, so that nothing can be learned from it: {problems}. Correct it, or "
                "leave it out"
            )
        plain = _plain(space, config)
        part = bool(apart) and isinstance(outcome, Mapping)
        limited = [limit.output for limit in limits if isinstance(outcome, Mapping)]
        names = (*apart,) if part else tuple(dict.fromkeys((*goals.names, *limited)))
        read = read_outcome(outcome, names, () if part else goals.names)
        read = completed(goals, Outcome(), read) if goals.several else read
        broken = space.validate(plain)
        if broken and illegal == REFUSE:
            raise ConfigurationError(
                f"{what} is illegal: {'; '.join(map(str, broken))}. Correct it, leave it out, or let the model learn from "
                "it, which never recommends it: study.add(config, outcome, illegal='learn')"
            )
        # nothing is lost by saying so, and a table that was read as texts is noticed
        if not all(statement(outcome, apart if part else (n,)) for n in goals.names):
            raise ValueError(
                f"what came of {what} is not known: {read.message.replace('the objective returned', 'it is')}"
            )
        return cls(plain, read, not broken, tuple(n for n in apart if read[n].status != MISSING))

    @classmethod
    def listed(
        cls,
        space: Space,
        given: KnownGiven,
        apart: Sequence[str] = (),
        limits: Sequence[Limit] = (),
        goals: Goals = MINIMISED,
    ) -> list[Known]:
        """What ``known=`` holds, all of it checked.

        Raises:
            ConfigurationError: one is illegal.
            ValueError: one has no outcome.
            TypeError: something in it is no pair.
        """
        if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
            raise TypeError(f"known= is a list of pairs (configuration, outcome), got {shown(given)}")
        what = "the configuration of known[{}]"
        return [
            cls.of(space, *_pair(k, pair), what=what.format(k), apart=apart, limits=limits, goals=goals)
            for k, pair in enumerate(given)
        ]

    @classmethod
    def told(cls, trial: Trial) -> Known:
        """A trial that was one."""
        return cls(trial.config, trial.outcome, trial.legal)

    def key(self, space: Space) -> str:
        """Equal for what is the same evaluation with the same outcome."""
        told = sorted(
            (n, o.status, repr(o.value), o.message, *map(repr, o.folds)) for n, o in self.outcome.outputs.items()
        )
        return f"{self.legal} {encode_config(space, self.config)} {told}"

    def row(self, space: Space, number: int, state: Mapping[str, Any]) -> TrialRow:
        """The row of a trial that has its outcome from the start."""
        now = time.time()
        evaluations = tuple(
            EvaluationRow.of(number, name, 1, "", replace(o, cost=None), now, now)
            for name, o in self.outcome.outputs.items()
        )
        origin, status = KNOWN if self.legal else ILLEGAL, self.outcome.status(self.outputs)
        told = {"finished": now, "duration": 0.0, "evaluations": evaluations}
        return _row(space, number, status, self.config, origin, state, self.outputs, **told)


def wanted(space: Space, config: Any) -> Configuration:
    """A configuration to evaluate, as the space has it.

    Raises:
        ConfigurationError: illegal; the rules that it breaks and the nearest legal one.
    """
    if not isinstance(config, Mapping):
        raise ConfigurationError(f"a configuration is a dict of parameter values, got {shown(config)}")
    if space.validate(dict(config)):
        raise ConfigurationError(f"the configuration cannot be evaluated: {space.why_illegal(dict(config))}")
    return _plain(space, config)


def same(space: Space, config: Configuration, trials: Sequence[Trial]) -> Trial | None:
    """The first trial of a configuration, one that is pending before others; None: there is none."""
    found = [t for t in trials if repeats(compiled(space), config, [t.config])]
    return min(found, key=lambda t: not t.pending, default=None)


def unasked(space: Space, config: Configuration, trials: Sequence[Trial], apart: Sequence[str]) -> tuple[str, ...]:
    """Those of the outputs that may be evaluated apart that no trial of a configuration is about."""
    there = [t for t in trials if repeats(compiled(space), config, [t.config])]
    return tuple(n for n in apart if not any(n in (t.evaluate or apart) for t in there))


def enqueued_row(
    space: Space, number: int, config: Configuration, state: Mapping[str, Any], outputs: Sequence[str] = ()
) -> TrialRow:
    """The row of a trial that waits for its first attempt; outputs: those to evaluate, where it is not all of them."""
    return _row(space, number, PENDING, config, ENQUEUED, state, outputs)


def repeat_row(space: Space, number: int, config: Configuration, state: Mapping[str, Any], repeat: int) -> TrialRow:
    """The row of another evaluation of a configuration, which waits for its first attempt."""
    return _row(space, number, PENDING, config, repeat_origin(repeat), state, ())


def _row(
    space: Space,
    number: int,
    status: str,
    config: Configuration,
    origin: str,
    state: Mapping[str, Any],
    outputs: Sequence[str],
    **further: Any,
) -> TrialRow:
    return TrialRow(
        number=number,
        status=status,
        config=readable_config(config),
        exact=encode_config(space, config),
        proof=None,
        origin=origin,
        seconds="{}",
        state=json.dumps(dict(state)),  # the optimizer goes on from where it was
        outputs=json.dumps(list(outputs)),
        trace="{}",
        stop="",
        proposed=time.time(),
        **further,
    )


def _pair(k: int, item: Any) -> tuple[Any, Any]:
    try:
        config, outcome = item
    except (TypeError, ValueError):
        config = outcome = None
    if not isinstance(config, Mapping):
        raise TypeError(
            f"known= is a list of pairs (configuration, outcome), such as [({{'lr': 0.1}}, 0.37)]; known[{k}] is {shown(item)}"
        )
    return config, outcome


def _plain(space: Space, config: Mapping[str, Any]) -> Configuration:
    """In the order of declaration, each value as it was declared."""
    return {name: p.domain.canonical(config[name]) for name, p in space.parameters.items() if name in config}
