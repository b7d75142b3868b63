"""Constraints on the command line: ``latency_ms=5`` (at most), ``accuracy=0.9:`` (at least), ``share=0.1:0.2``, ``ms=none``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mipcash.errors import ModelError
from mipcash.study.records.limits import LimitsGiven, limits_of

SYNTAX = "NAME=HIGH, NAME=LOW: or NAME=LOW:HIGH"
Pairs = Mapping[str, tuple[float | None, float | None]]
"""Low and high by output, None for no limit."""


def parsed(given: Sequence[str]) -> dict[str, tuple[float | None, float | None]]:
    """Parse the constraints of ``--limit``. ``ms=none`` gives two Nones. The last one for an output counts.

    Raises:
        ModelError: a constraint cannot be parsed; the message shows the syntax.
    """
    found: dict[str, tuple[float | None, float | None]] = {}
    for text in given:
        name, equals, ends = text.rpartition("=")
        low, colon, high = ends.partition(":")
        try:
            if not equals or not name.strip(" <>") or name.rstrip().endswith(("<", ">")) or not (low or high):
                raise ValueError
            if ends.strip().lower() == "none":
                pair: tuple[float | None, float | None] = (None, None)
            else:
                pair = (_end(low), _end(high)) if colon else (None, float(low))
                limits_of({name.strip(): pair})
        except ValueError as error:
            cause = f" ({error})" if str(error).startswith("the limit") else ""
            raise ModelError(
                f"--limit takes {SYNTAX}, such as --limit latency_ms=5 (at most 5) or --limit accuracy=0.9: (at least 0.9); got "
                f"{text!r}{cause}"
            ) from None
        found[name.strip()] = pair
    return found


def together(model: Pairs, typed: Pairs) -> dict[str, tuple[float | None, float | None]]:
    """Return the constraints of a model, overridden by those of the command line. Outputs set to ``none`` are left out."""
    return {name: ends for name, ends in {**model, **typed}.items() if ends != (None, None)}


def declared(where: str, given: Any) -> dict[str, tuple[float | None, float | None]]:
    """Return the constraints in ``LIMITS`` of a model file.

    Raises:
        ModelError: they are invalid.
    """
    limits: LimitsGiven = given
    try:
        return {l.output: (_finite(l.low), _finite(l.high)) for l in limits_of(limits)}
    except ValueError as error:
        raise ModelError(f"LIMITS of {where}: {error}") from error


def _end(text: str) -> float | None:
    return float(text) if text.strip() else None


def _finite(end: float) -> float | None:
    return None if abs(end) == float("inf") else end
