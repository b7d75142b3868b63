"""Exceptions of an objective in words, which any process can send. Workers import this, so that it imports little."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from importlib import metadata

from mipcash.errors import ModelError
from mipcash.study.reading import describe_error
from mipcash.study.text import MESSAGE_LIMIT, storable

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
