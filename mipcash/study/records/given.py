"""Rows for what a user adds to a study: evaluations made outside it, and configurations to evaluate next.

Both become trials that no optimizer proposed, marked by their origin. A configuration is checked against the space: first its
values against domains and activity, then the rules. A configuration that only violates rules can be represented by every model of
the space, and may be learned from; a value outside its domain cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mipcash.errors import ConfigurationError
from mipcash.modelling.domains import Configuration, Real
from mipcash.optimizers.outcome import MISSING, Outcome
from mipcash.space.compiled import compiled
from mipcash.space.novelty import repeats
from mipcash.study.reading import read_outcome, statement
from mipcash.study.records.encoding import encode_config, misplaced
from mipcash.study.records.telling import completed
from mipcash.study.records.trials import waiting_row
from mipcash.study.storage.attempts import recorded
from mipcash.study.storage.protocol import TrialRow
from mipcash.study.trial import ILLEGAL, KNOWN, Trial
from mipcash.text import shown

if TYPE_CHECKING:
    from mipcash.space.space import Space
    from mipcash.study.proposer import Proposer

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
        cls, asks: Proposer, config: Any, outcome: Any, illegal: str = REFUSE, what: str = "the configuration"
    ) -> Known:
        """Check and convert an evaluation. Arguments as for ``mipcash.Study.add``; ``what`` is its name in messages.

        Args:
            asks: of the study. Outcomes of decoupled evaluations may lack outputs; others must have the objectives. Constrained
                outputs may be missing, and must be numbers otherwise.

        Raises:
            ConfigurationError: the configuration is outside the space, or violates rules although ``illegal`` is ``refuse``.
            ValueError: the outcome is invalid, or ``illegal`` is neither ``refuse`` nor ``learn``.
        """
        space, apart, objectives = asks.space, tuple(asks.costs), asks.objectives
        if illegal not in (REFUSE, LEARN):
            raise ValueError(f"illegal must be {REFUSE!r} or {LEARN!r}, got {shown(illegal)}")
        if problems := misplaced(space, config):
            raise ConfigurationError(
                f"{what} does not fit into space {space.name!r}: {problems}. Correct it, or leave it out"
            )
        plain = _plain(space, config)
        part = bool(apart) and isinstance(outcome, Mapping)
        limited = [limit.output for limit in asks.limits if isinstance(outcome, Mapping)]
        names = apart if part else tuple(dict.fromkeys((*objectives.names, *limited)))
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
    def listed(cls, asks: Proposer, given: Any) -> list[Known]:
        """Return the checked evaluations of ``known=``.

        Raises:
            ConfigurationError: a configuration is illegal.
            ValueError: an outcome is invalid.
            TypeError: the argument is no list of pairs.
        """
        if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
            raise TypeError(f"known= is a list of pairs (configuration, outcome), got {shown(given)}")
        what = "the configuration of known[{}]"
        return [cls.of(asks, *_pair(k, pair), what=what.format(k)) for k, pair in enumerate(given)]

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

    def row(self, space: Space, number: int, state: str) -> TrialRow:
        """Return the row of a trial that has its outcome from the start."""
        origin, status = KNOWN if self.legal else ILLEGAL, self.outcome.status(self.outputs)
        row = waiting_row(space, number, self.config, origin, state, self.outputs)
        return recorded(row, self.outcome, status, "", row.proposed, 0.0, 1)[0]


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


def asked_before(
    space: Space, config: Configuration, trials: Sequence[Trial], apart: Sequence[str]
) -> tuple[Trial | None, tuple[str, ...]]:
    """Return the first trial of a configuration, preferably a pending one, and the outputs that no trial of it covers.

    Args:
        apart: outputs of decoupled evaluations.
    """
    there = [t for t in trials if repeats(compiled(space), config, [t.config])]
    left = tuple(n for n in apart if not any(n in (t.evaluate or apart) for t in there))
    return min(there, key=lambda t: not t.pending, default=None), left


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
