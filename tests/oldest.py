"""Print the oldest versions that pyproject.toml allows, of the core and of the extra ``optuna``, as constraints for pip.

``make core`` installs these versions, and the other environments the newest ones. They exist for the oldest Python that is
supported; with a newer Python nothing is printed, and the newest versions are installed here too.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def oldest(requirements: list[str]) -> list[str]:
    """Return ``name==version`` for every ``name>=version``."""
    return [re.sub(r"^([\w.-]+)>=([\w.]+).*", r"\1==\2", each) for each in requirements]


if __name__ == "__main__":
    if f"{sys.version_info.major}.{sys.version_info.minor}" == PROJECT["requires-python"].removeprefix(">="):
        print(*oldest([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["optuna"]]), sep="\n")
    else:
        print(f"Python {sys.version.split()[0]}: the core is tested with the newest versions only", file=sys.stderr)
