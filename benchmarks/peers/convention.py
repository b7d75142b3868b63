"""Conventions for illegal suggestions.

repair       The nearest legal configuration is evaluated and reported instead.
penalty      The suggestion costs an evaluation. Its loss is the problem's penalty or the worst legal loss.
penalty-500  A loss of 500 is reported without cost until the run has its legal evaluations.
             Daxberger et al., Section 4 (b): "we only report valid observations".
             The history has all suggestions, so both counts can be read.
ignore       The same, but nothing is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

CONVENTIONS = ("repair", "penalty")
"""Conventions of the peers benchmark."""
PENALTY = "penalty"
PATIENCE = 20
"""If illegal suggestions cost nothing, a run ends at this multiple of its budget of suggestions."""


@dataclass(frozen=True)
class Convention:
    """Convention for illegal suggestions.

    Attributes:
        name: name in results; empty for a method that is always legal or a space without rules.
        repaired: True if the nearest legal configuration is evaluated instead.
        told: True if the method gets a loss for the suggestion.
        value: that loss; None for the penalty of the problem, or the worst loss so far.
        counted: True if the suggestion costs one of the evaluations.
    """

    name: str
    repaired: bool = False
    told: bool = True
    value: float | None = None
    counted: bool = True


def convention(name: str) -> Convention:
    """Return a convention by its name.

    Raises:
        ValueError: no convention has this name.
    """
    head, dash, value = name.partition("-")
    if name in ("", PENALTY):
        return Convention(name)
    if name == "repair":
        return Convention(name, repaired=True)
    if name == "ignore":
        return Convention(name, told=False, counted=False)
    try:
        if head == PENALTY and dash:
            return Convention(name, value=float(value), counted=False)
    except ValueError:
        pass
    raise ValueError(
        f"there is no convention {name!r}; there are {', '.join(CONVENTIONS)}, ignore, and penalty-500 with any number"
    )
