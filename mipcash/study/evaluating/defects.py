"""Whether an objective fails for a reason of its own, and not for the configurations it is given.

A name that does not exist, a package that is not installed or a column that is misspelt fails at every configuration. Such a run is
stopped and not counted. The rule, by what is told while no evaluation has succeeded:

* an error that cannot depend on the configuration (``CERTAIN``) stops the run at the first evaluation that raises it,
* the same error, or the same unreadable outcome, in each of the first ``SUSPICIOUS`` evaluations of the study stops it too,
* :class:`~mipcash.Failed`, nan, inf and dead workers are statements about a configuration, and stop nothing.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata

from mipcash.errors import ModelError
from mipcash.optimizers.outcome import LOSS
from mipcash.study.reading import describe_error, statement
from mipcash.study.result import SUSPICIOUS, same_failures
from mipcash.study.text import MESSAGE_LIMIT, storable
from mipcash.study.trial import Trial

CERTAIN = (NameError, ImportError, SyntaxError, ModelError)
"""What no configuration is at fault for, as a rule. An unbound local variable is: some branch of the code did not set it."""
FRAMES = 3
"""Innermost frames of the objective that are shown."""


@dataclass(frozen=True)
class Raised:
    """What an objective raised, in words that any process can send.

    Attributes:
        text: type, message and place.
        trace: the last frames of the objective.
        certain: whether it cannot depend on the configuration.
        cure: what brings a package that is missing; else empty.
    """

    text: str
    trace: str = ""
    certain: bool = False
    cure: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Of an exception that came out of a call of the objective."""
        inside = error.__traceback__.tb_next if error.__traceback__ is not None else None
        uncallable = isinstance(error, TypeError) and inside is None  # the call itself failed
        certain = uncallable or (isinstance(error, CERTAIN) and not isinstance(error, UnboundLocalError))
        cure = ""
        if isinstance(error, ModuleNotFoundError) and isinstance(error.name, str):
            cure = pip_command(error.name)
        lines = "".join(traceback.format_list(traceback.extract_tb(inside, limit=-FRAMES)))
        return cls(describe_error(error), storable(lines.rstrip(), MESSAGE_LIMIT), certain, cure)


@dataclass(frozen=True)
class Defect:
    """An objective that fails for a reason of its own.

    Attributes:
        trials: numbers of the evaluations that failed for it.
        text: what they failed with.
        raised: the latest of them; None: what was returned could not be read.
        certain: whether there can be no doubt of it.
    """

    trials: tuple[int, ...]
    text: str
    raised: Raised | None
    certain: bool

    def __str__(self) -> str:
        n, raised = len(self.trials), self.raised or Raised("")
        which = ", whatever the configuration" if self.certain else f" at each of its first {n} evaluations alike"
        cure = f"Install what is missing ({raised.cure})" if raised.cure else "Mend it"
        said = [
            f"the objective failed{which}: {self.text}",
            raised.trace,
            f"{cure} and run again: nothing of the budget was spent, and the same configurations are evaluated again",
            ""
            if self.certain
            else "Where it is they that fail, let the objective raise mc.Failed('why'): then the run goes on",
        ]
        return "\n".join(line for line in said if line)


class Defects:
    """Looks for a defect while a run goes on.

    Attributes:
        found: the defect that stops the run; None: there is none. One that is not certain is one as long as no evaluation that
            still runs succeeds.
    """

    def __init__(self) -> None:
        self.found: Defect | None = None
        self._succeeded = False
        self._certain: list[int] = []

    def note(self, told: Trial, returned: object, raised: Raised | None, trials: Callable[[], Sequence[Trial]]) -> None:
        """An evaluation was told.

        Args:
            told: the trial that was evaluated.
            returned: by the objective.
            raised: by it; None: it returned.
            trials: gives all of the study.
        """
        self._succeeded |= told.done
        at_fault = told.failed and (raised is not None or not statement(returned, told.evaluate or (LOSS,)))
        if not at_fault or self._succeeded:
            self.found = self.found if self._certain else None
            return
        own = [t for t in trials() if not (t.known or t.pending)]
        if raised is not None and raised.certain:
            self._certain += [t.number for t in own if t.failed and t.message == told.message]
            self.found = Defect(tuple(dict.fromkeys(self._certain)), raised.text, raised, True)
        elif not self._certain:
            same = len(own) >= SUSPICIOUS and same_failures(own)
            self.found = Defect(tuple(t.number for t in own), told.message, raised, False) if same else None


def pip_command(module: str) -> str:
    """The pip command that brings a missing module."""
    top = module.split(".")[0]
    try:
        requirements = metadata.metadata("mipcash").get_all("Requires-Dist") or []
    except metadata.PackageNotFoundError:
        requirements = []
    extras: list[str] = []
    for requirement in requirements:
        package, _, condition = requirement.partition(";")
        _, is_extra, extra = condition.partition("extra ==")
        if is_extra and (package.startswith(top) or top == extra.strip(" '\"")):
            extras.append(extra.strip(" '\""))
    best = sorted(set(extras), key=lambda e: (e in ("dev", "bench"), e != top, e))
    return f'pip install "mipcash[{best[0]}]"' if best else f"pip install {top}"
