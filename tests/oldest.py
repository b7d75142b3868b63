"""Print the oldest versions that pyproject.toml allows, for the core and the extra ``optuna``, as constraints for pip.

``make core`` installs these versions; the other environments install the newest ones. The oldest versions exist only
for the oldest supported Python. A newer Python prints nothing, so the newest versions are installed.
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
