"""What becomes of an illegal suggestion.

repair         the nearest legal configuration is evaluated and told in its place
penalty        it costs an evaluation, and a penalty is told: what the problem declares, else the worst legal loss so far
penalty-500    500 is told; it costs no evaluation: the run goes on until it has its legal ones (Daxberger et al., Section 4
               (b): "we only report valid observations"). The history shows all suggestions, so that both counts can be read
ignore         the same, and nothing is told
"""

from __future__ import annotations

from dataclasses import dataclass

CONVENTIONS = ("repair", "penalty")
"""Those of the peers benchmark."""
PENALTY = "penalty"
PATIENCE = 20
"""Where illegal suggestions cost nothing, a run ends at so many times its budget of suggestions."""


@dataclass(frozen=True)
class Convention:
    """One convention.

    Attributes:
        name: as in results; empty for a method that is always legal or a space without rules.
        repaired: the nearest legal configuration takes its place.
        told: the method gets a loss for it.
        value: that loss; None: of the problem, or the worst so far.
        counted: it costs one of the evaluations.
    """

    name: str
    repaired: bool = False
    told: bool = True
    value: float | None = None
    counted: bool = True


def convention(name: str) -> Convention:
    """A convention by its name.

    Raises:
        ValueError: there is none of that name.
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
