"""A proposed rule: settings that failed together, with all that is known for and against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mipcash.display import counted
from mipcash.modelling.domains import Configuration
from mipcash.space.cuts.setting import Named, Setting, forbidding, forbidding_text


@dataclass(frozen=True)
class Evidence:
    """What speaks for a proposed rule, and against it.

    Attributes:
        failed: numbers of the trials with these settings that failed.
        kinds: how many of them failed by which kind.
        worked: numbers of those that succeeded: none of a rule that is proposed.
        failures, evaluations: how many failed, of how many, of those that no rule proposed before this one explains.
        expected: how many of the trials with these settings would have failed by chance.
        chance: a bound on the probability that chance alone gives such a rule (:mod:`mipcash.study.cuts.search`).
        looks: conjunctions of settings that were compared.
    """

    failed: tuple[int, ...]
    kinds: Mapping[str, int]
    worked: tuple[int, ...]
    failures: int
    evaluations: int
    expected: float
    chance: float
    looks: int

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.kinds.items())
        worked = "none worked" if not self.worked else f"{len(self.worked)} worked: trials {list(self.worked)}"
        return (
            f"{counted(len(self.failed), 'evaluation')} failed under it ({kinds}) and {worked}, where {self.failures} of "
            f"{self.evaluations} failed in all, {self.expected:.1f} by chance; p <= {self.chance:.1g} for the best of "
            f"{self.looks:,} conjunctions"
        )


@dataclass(frozen=True)
class ProposedRule:
    """Settings that failed together wherever they came together. It is no rule before ``space.accept`` is called with it.

    Attributes:
        settings: what failed together.
        evidence: for it and against it.
        works: number and configuration of all that was known to work when it was proposed.
    """

    settings: tuple[Setting, ...]
    evidence: Evidence
    works: tuple[tuple[int, Configuration], ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """What the rule is called, unless its user calls it something else: ``kind = 'b' and x > 0.6 fails``."""
        return f"{self.what} fails"

    @property
    def what(self) -> str:
        """The settings: ``kind = 'b' and x > 0.6``."""
        return " and ".join(map(str, self.settings))

    @property
    def expression(self) -> str:
        """The rule as a user writes it: ``mc.any_of(~space['kind'].is_('b'), space['x'] <= 0.6)``."""
        return forbidding_text(self.settings)

    @property
    def accepting(self) -> str:
        """The line that accepts it, for the script or model that declares the space."""
        return f"space.accept({self.expression}, name={self.name!r})"

    def relation(self, space: Named) -> Any:
        """The rule as a relation of a space."""
        return forbidding(self.settings, space)

    def forbids(self, config: Configuration) -> bool:
        """Whether a configuration has all of the settings."""
        return all(setting.holds(config) for setting in self.settings)

    def __str__(self) -> str:
        return f"{self.what}: {self.evidence}\n    {self.accepting}"
