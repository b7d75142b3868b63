"""Section 4 (a): ten hyperparameters of Table 5, with errors looked up in a table or trained."""

from __future__ import annotations

from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.paper import remembered, table
from benchmarks.paper.remembered import Remembered
from benchmarks.peers.problem import LOWER_BOUND, Config, Objective, Problem
from mipcash.models.xgboost import build, error, import_xgboost

DIRECT = "monks-direct"
KEPT = table.FOLDER.parent / "xgboost" / "evaluations-direct.jsonl"
SEED = 0


def xgboost_version() -> str:
    """Return the version of the installed XGBoost package: the CPU build or the full one."""
    try:
        return version("xgboost-cpu")
    except PackageNotFoundError:
        return version("xgboost")


def looked_up(name: str, config: Config) -> float:
    """Return the error of the nearest setting in a table of the repository."""
    return table.kept(name)(config)


def _problem(name: str, objective: Objective, source: str) -> Problem:
    return Problem(
        name=name,
        space=lambda: build()[0],
        objective=objective,
        group="free",
        optimum=0.0,
        certificate=LOWER_BOUND,
        source=f"Daxberger et al., Section 4 (a) and Table 5; {source}",
        tolerance=0.0,
    )


def _machine() -> dict[str, Any]:
    return {"mipcash": version("mipcash"), "xgboost": xgboost_version()}


def check() -> None:
    """Check that XGBoost is installed.

    Raises:
        mipcash.errors.ModelError: it is not installed.
    """
    import_xgboost()


@cache
def problems() -> dict[str, Problem]:
    """Return ``monks-table``, ``phoneme-table``, and ``monks-direct``, which trains at every evaluation."""
    made = [_problem(f"{n}-table", partial(looked_up, n), f"nearest of real trainings on {d}") for n, d in table.DATA.items()]
    trained = Remembered(lambda: partial(error, seed=SEED), KEPT, {"data": "monks-problem-1", "seed": SEED}, _machine)
    made.append(_problem(DIRECT, trained, "trained on monks-problem-1"))
    return {p.name: p for p in made}


def hours() -> dict[str, float]:
    """Return the hours of the tables and of the kept trainings."""
    return table.hours() | remembered.hours(p.objective for p in problems().values())


def machines() -> list[str]:
    """Return the machines of the kept evaluations."""
    return remembered.machines(p.objective for p in problems().values())
