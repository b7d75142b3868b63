"""Settings: what a configuration may have, such as ``kind = 'b'``, ``x > 0.6`` or ``depth is active``, and the rule against them.

A setting is said of an active parameter: one that is absent from a configuration has none. In rules an inactive parameter reads
as 0, so that a rule about a conditional one says beside its bound that it may be inactive, where 0 would break it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mipcash.modelling.domains import Configuration, same_value
from mipcash.modelling.formulas import any_of

IS, ABOVE, BELOW, ACTIVE, AT = "is", ">", "<", "active", "at"


class Named(Protocol):
    """What has parameters by name (:class:`mipcash.Space`)."""

    def __getitem__(self, name: str) -> Any: ...


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        label: of the parameter.
        sign: ``is`` (one of some values), ``>``, ``<``, ``active``, or ``at`` (a module's place in an order).
        value: the values as a tuple; the bound, which is not part of it; nothing; module and position, from 1.
        conditional: whether the parameter may be inactive.
    """

    label: str
    sign: str
    value: Any = None
    conditional: bool = False

    def holds(self, config: Configuration) -> bool:
        """Whether a configuration has it."""
        if self.label not in config:
            return False
        found = config[self.label]
        if self.sign == IS:
            return any(same_value(found, v) for v in self.value)
        if self.sign == AT:
            return bool(found[self.value[1] - 1] == self.value[0])
        return self.sign == ACTIVE or bool(found > self.value if self.sign == ABOVE else found < self.value)

    def __str__(self) -> str:
        if self.sign == IS:
            return f"{self.label} = {self.value[0]!r}" if len(self.value) == 1 else f"{self.label} in {self.value!r}"
        if self.sign == ACTIVE:
            return f"{self.label} is active"
        if self.sign == AT:
            return f"{self.value[0]} is number {self.value[1]} of {self.label}"
        return f"{self.label} {self.sign} {self.value!r}"

    def negations(self, space: Named) -> list[Any]:
        """Relations of a space, one of which holds where the setting does not."""
        parameter = space[self.label]
        if self.sign == IS:
            return [~parameter.is_(*self.value)]
        if self.sign == AT:
            return [~parameter.at(*self.value)]
        off = [parameter.is_active() <= 0] if self._needs_activity else []
        if self.sign == ACTIVE:
            return off
        return [parameter <= self.value if self.sign == ABOVE else parameter >= self.value, *off]

    def negated_texts(self) -> list[str]:
        """:meth:`negations` as a user writes them."""
        parameter = f"space[{self.label!r}]"
        if self.sign in (IS, AT):
            return [f"~{parameter}.{'is_' if self.sign == IS else 'at'}({', '.join(map(repr, self.value))})"]
        off = [f"{parameter}.is_active() <= 0"] if self._needs_activity else []
        if self.sign == ACTIVE:
            return off
        return [f"{parameter} {'<=' if self.sign == ABOVE else '>='} {self.value!r}", *off]

    @property
    def _needs_activity(self) -> bool:
        """Whether 0, as which an inactive parameter reads, would break the bound."""
        reads: Mapping[str, Callable[[], bool]] = {
            ACTIVE: lambda: True,
            ABOVE: lambda: self.conditional and self.value < 0,
            BELOW: lambda: self.conditional and self.value > 0,
        }
        return self.sign in reads and reads[self.sign]()


def forbidding(settings: Sequence[Setting], space: Named) -> Any:
    """The relation of a space that some settings together break, and nothing else does."""
    parts = [part for setting in settings for part in setting.negations(space)]
    return parts[0] if len(parts) == 1 else any_of(*parts)


def forbidding_text(settings: Sequence[Setting]) -> str:
    """:func:`forbidding` as a user writes it."""
    parts = [part for setting in settings for part in setting.negated_texts()]
    return parts[0] if len(parts) == 1 else f"mc.any_of({', '.join(parts)})"
