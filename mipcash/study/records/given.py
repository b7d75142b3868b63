"""Rows for what a user adds to a study: evaluations made outside it, and configurations to evaluate next.

Both become trials that no optimizer proposed, marked by their origin. A configuration is checked against the space: first its
values against domains and activity, then the rules. A configuration that only violates rules can be represented by every model of
the space, and may be learned from; a value outside its domain cannot.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mipcash.errors import ConfigurationError
from mipcash.modelling.domains import Configuration, Real
from mipcash.optimizers.objectives import MINIMISED, Objectives
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import MISSING, PENDING, Outcome
from mipcash.space.compiled import compiled
from mipcash.space.novelty import repeats
from mipcash.study.reading import read_outcome, statement
from mipcash.study.records.encoding import encode_config, misplaced, readable_config
from mipcash.study.records.telling import completed
from mipcash.study.storage.protocol import EvaluationRow, TrialRow
from mipcash.study.trial import ENQUEUED, ILLEGAL, KNOWN, Trial, repeat_origin
from mipcash.text import shown

if TYPE_CHECKING:
    from mipcash.space.space import Space

REFUSE, LEARN = "refuse", "learn"
"""Treatment of an evaluation whose configuration violates rules."""

TableGiven = Any
"""A data frame, a path, or a list of dicts."""
KnownGiven = Any
"""Pairs of a configuration and its outcome, or a table of them."""


@dataclass(frozen=True)
class Known:
    """An evaluation that was made outside the study.

    Attributes:
        config: the configuration in canonical form: parameters in the order of declaration, values as declared.
        outcome: its outcome.
        legal: True if the configuration satisfies the rules.
        outputs: evaluated outputs of a decoupled evaluation; else empty.
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
        objectives: Objectives = MINIMISED,
    ) -> Known:
        """Check and convert an evaluation. Arguments as for ``mipcash.Study.add``; ``what`` is its name in messages.

        Args:
            apart: names of the outputs of decoupled evaluations, of which the outcome may lack some; empty: it must have the loss.
            limits: outcome constraints. Their outputs may be missing, and must be numbers otherwise.

        Raises:
            ConfigurationError: the configuration is outside the space, or violates rules although ``illegal`` is ``refuse``.
            ValueError: the outcome is invalid, or ``illegal`` is neither ``refuse`` nor ``learn``.
        """
        if illegal not in (REFUSE, LEARN):
            raise ValueError(f"illegal must be {REFUSE!r} or {LEARN!r}, got {shown(illegal)}")
        if problems := misplaced(space, config):
            raise ConfigurationError(
                f"{what} does not fit into space {space.name!r}: {problems}. Correct it, or leave it out"
            )
        plain = _plain(space, config)
        part = bool(apart) and isinstance(outcome, Mapping)
        limited = [limit.output for limit in limits if isinstance(outcome, Mapping)]
        names = (*apart,) if part else tuple(dict.fromkeys((*objectives.names, *limited)))
        read = read_outcome(outcome, names, () if part else objectives.names)
        read = completed(objectives, Outcome(), read) if objectives.several else read
        broken = space.validate(plain)
        if broken and illegal == REFUSE:
            raise ConfigurationError(
                f"{what} is illegal: {'; '.join(map(str, broken))}. Correct it, leave it out, or let the model learn from "
                "it, which never recommends it: study.add(config, outcome, illegal='learn')"
            )
        # an outcome without a number is refused; it is often a table whose numbers were read as texts
        if not all(statement(outcome, apart if part else (n,), objectives.several) for n in objectives.names):
            raise ValueError(
                f"the outcome of {what} is invalid: {read.message.replace('the objective returned', 'it is')}"
            )
        return cls(plain, read, not broken, tuple(n for n in apart if read[n].status != MISSING))

    @classmethod
    def listed(
        cls,
        space: Space,
        given: Any,
        apart: Sequence[str] = (),
        limits: Sequence[Limit] = (),
        objectives: Objectives = MINIMISED,
    ) -> list[Known]:
        """Return the checked evaluations of ``known=``.

        Raises:
            ConfigurationError: a configuration is illegal.
            ValueError: an outcome is invalid.
            TypeError: the argument is no list of pairs.
        """
        if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
            raise TypeError(f"known= is a list of pairs (configuration, outcome), got {shown(given)}")
        what = "the configuration of known[{}]"
        return [
            cls.of(space, *_pair(k, pair), what=what.format(k), apart=apart, limits=limits, objectives=objectives)
            for k, pair in enumerate(given)
        ]

    @classmethod
    def of_trial(cls, trial: Trial) -> Known:
        """Restore the evaluation from its trial."""
        return cls(trial.config, trial.outcome, trial.legal)

    def key(self, space: Space) -> str:
        """Return a key that is equal for equal evaluations with outcomes that agree to nine digits."""
        reported = sorted(
            (n, o.status, *(f"{v + 0.0:.9g}" for v in (o.value, *o.folds) if v is not None), o.message)
            for n, o in self.outcome.outputs.items()
        )
        return f"{self.legal} {encode_config(space, self.config)} {reported}"

    def row(self, space: Space, number: int, state: Mapping[str, Any]) -> TrialRow:
        """Return the row of a trial that has its outcome from the start."""
        now = time.time()
        evaluations = tuple(
            EvaluationRow.of(number, name, 1, "", replace(o, cost=None), now, now)
            for name, o in self.outcome.outputs.items()
        )
        origin, status = KNOWN if self.legal else ILLEGAL, self.outcome.status(self.outputs)
        reported = {"finished": now, "duration": 0.0, "evaluations": evaluations}
        return _row(space, number, status, self.config, origin, state, self.outputs, **reported)


def wanted(space: Space, config: Any) -> Configuration:
    """Return the canonical form of a configuration to evaluate.

    Raises:
        ConfigurationError: it is illegal; the message has the violated rules and the nearest legal configuration.
    """
    if not isinstance(config, Mapping):
        raise ConfigurationError(f"a configuration is a dict of parameter values, got {shown(config)}")
    if space.validate(dict(config)):
        raise ConfigurationError(f"the configuration cannot be evaluated: {space.why_illegal(dict(config))}")
    return _plain(space, config)


def nine_digits(space: Space, config: Configuration, legal: bool) -> str:
    """Return a key that is equal for configurations of equal legality whose numbers agree to nine digits of their ranges."""
    domains = {n: space.parameters[n].domain for n in config}
    digits = [(n, f"{d.to_unit(v):.9f}" if isinstance(d := domains[n], Real) else v) for n, v in config.items()]
    return repr((legal, digits))


def same(space: Space, config: Configuration, trials: Sequence[Trial]) -> Trial | None:
    """Return the first trial of a configuration, preferably a pending one; None if there is none."""
    found = [t for t in trials if repeats(compiled(space), config, [t.config])]
    return min(found, key=lambda t: not t.pending, default=None)


def unasked(space: Space, config: Configuration, trials: Sequence[Trial], apart: Sequence[str]) -> tuple[str, ...]:
    """Return the outputs of decoupled evaluations that no trial of the configuration has evaluated or will evaluate."""
    there = [t for t in trials if repeats(compiled(space), config, [t.config])]
    return tuple(n for n in apart if not any(n in (t.evaluate or apart) for t in there))


def enqueued_row(
    space: Space, number: int, config: Configuration, state: Mapping[str, Any], outputs: Sequence[str] = ()
) -> TrialRow:
    """Return the row of a trial that waits for its first attempt. ``outputs`` are those to evaluate; empty: all."""
    return _row(space, number, PENDING, config, ENQUEUED, state, outputs)


def repeat_row(
    space: Space, number: int, config: Configuration, state: Mapping[str, Any], repeat: int, outputs: Sequence[str]
) -> TrialRow:
    """Return the row of a repeat that waits for its first attempt. ``outputs`` are those of decoupled evaluations."""
    return _row(space, number, PENDING, config, repeat_origin(repeat), state, outputs)


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
        state=json.dumps(dict(state)),  # the optimizer continues from its current state
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
    """Return the configuration in the order of declaration, each value as declared."""
    return {name: p.domain.canonical(config[name]) for name, p in space.parameters.items() if name in config}
