"""Exceptions of an objective as text, which any process can send. Workers import this module, so it imports little."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from importlib import metadata

from mipcash.errors import ModelError
from mipcash.study.reading import describe_error
from mipcash.text import MESSAGE_LIMIT, storable

CERTAIN = (NameError, ImportError, SyntaxError, ModelError)
"""Exceptions that usually do not depend on the configuration. UnboundLocalError does: it depends on the branches taken."""
FRAMES = 3
"""Number of innermost frames of the objective that are shown."""


@dataclass(frozen=True)
class Raised:
    """An exception of the objective as text, which any process can send.

    Attributes:
        text: type, message and place.
        trace: the last frames of the objective.
        certain: True if it cannot depend on the configuration.
        cure: what to do, if the exception tells; else empty.
    """

    text: str
    trace: str = ""
    certain: bool = False
    cure: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Describe an exception of a call of the objective."""
        inside = error.__traceback__.tb_next if error.__traceback__ is not None else None
        uncallable = isinstance(error, TypeError) and inside is None  # the call itself failed
        certain = uncallable or (isinstance(error, CERTAIN) and not isinstance(error, UnboundLocalError))
        cure = ""
        if isinstance(error, ModuleNotFoundError) and isinstance(error.name, str):
            cure = f"Install what is missing ({pip_command(error.name)})"
        elif (
            isinstance(error, AttributeError) and isinstance(error.obj, dict) and str(error.name).startswith("suggest_")
        ):
            certain, cure = True, "Take values from the configuration, config['lr'] for trial.suggest_float('lr', ...),"
        elif isinstance(error, AttributeError) and "predict_proba" in str(error):
            cure = "Use an estimator with probabilities, such as CalibratedClassifierCV(SVC()), or another scoring,"
        lines = (
            ""
            if isinstance(error, ModelError)
            else "".join(traceback.format_list(traceback.extract_tb(inside, limit=-FRAMES)))
        )
        return cls(describe_error(error), storable(lines.rstrip(), MESSAGE_LIMIT), certain, cure)


def pip_command(module: str) -> str:
    """Return the pip command that installs a missing module."""
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
