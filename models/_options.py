"""Options of models: they come from Python as they are and from ``mipcash run --option key=value`` as strings."""

from __future__ import annotations

from collections.abc import Iterable

from mipcash.errors import ModelError


def flag(name: str, value: bool | str) -> bool:
    """A yes/no option.

    Raises:
        ModelError: the value is neither a bool nor one of true, yes, on, 1, false, no, off, 0.
    """
    text = str(value).strip().lower()
    if text in {"true", "yes", "on", "1"}:
        return True
    if text in {"false", "no", "off", "0"}:
        return False
    raise ModelError(f"option {name}={value!r} is neither yes nor no; write {name}=true or {name}=false")


def whole(name: str, value: int | str, low: int = 0) -> int:
    """A whole-number option of at least ``low``.

    Raises:
        ModelError: not a whole number, or below ``low``.
    """
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise ModelError(
            f"option {name}={value!r} is not a whole number; write for example {name}={max(low, 1)}"
        ) from None
    if number < low:
        raise ModelError(f"option {name}={number} is below {low}, the smallest value that makes sense; raise it")
    return number


def choice(name: str, value: str, allowed: Iterable[str]) -> str:
    """An option with a list of values.

    Raises:
        ModelError: the value is not one of ``allowed``.
    """
    listed = list(allowed)
    if value not in listed:
        raise ModelError(f"option {name}={value!r} is not known; choose one of {', '.join(listed)}")
    return value


def share(name: str, value: float | str) -> float:
    """A share, from 0 to below 1.

    Raises:
        ModelError: not a number, or outside.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number < 1.0:
        raise ModelError(f"option {name}={value!r} is no share from 0 to below 1; write for example {name}=0.25")
    return number
