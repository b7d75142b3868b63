"""Results of the runs: tables by problem and method, and by penalty."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.admmbo.problems import PROBLEMS
from benchmarks.admmbo.runner import Run

EARLY, BUDGETS = (6, 15, 30, 50), (30, 50, 100)
"""Evaluations of single outputs at which the share of feasible runs and the median best loss are reported."""
RESIDUALS = "residuals"
COMPARED = f"""| problem | method | starts | feasible after {", ".join(map(str, EARLY))} | all after | median regret after \
{", ".join(map(str, BUDGETS))} | at the end, quartiles | stopped by residuals | spent: median, most, of | \
answer: kept, median regret | CPU s an ask |"""
VARIED = """| rho | M | starts | all feasible after | median regret after 50, 100, at the end | stopped by residuals | \
spent: median, most, of | answer kept |"""


def row(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the table row of the runs of one problem, at least one run."""
    problem = PROBLEMS[runs[0].task.problem]
    regrets = {b: [r.at(b) - problem.best for r in runs] for b in (*BUDGETS, math.inf)}
    answers = [r.answer for r in runs if r.answer is not None]
    return {
        "problem": problem.name,
        "method": runs[0].task.method,
        "settings": runs[0].task.settings,
        "starts": len(runs),
        "feasible": {str(b): sum(r.feasible <= b for r in runs) / len(runs) for b in EARLY},
        "all_feasible": _number(max(r.feasible for r in runs)),
        "regret": {str(b): _number(statistics.median(values)) for b, values in regrets.items()},
        "quartiles": [_number(q) for q in _quartiles(regrets[math.inf])],
        "converged": sum(r.stopped.startswith(RESIDUALS) for r in runs) / len(runs),
        "stopped": sum(bool(r.stopped) for r in runs) / len(runs),
        "budget": problem.budget,
        "spent": statistics.median(r.spent for r in runs),
        "most_spent": max(r.spent for r in runs),
        "answers_kept": sum(kept for _, kept in answers) / len(answers) if answers else None,
        "answer_regret": _number(statistics.median(v - problem.best for v, _ in answers)) if answers else None,
        "cpu": statistics.mean(r.cpu / max(1, r.asks) for r in runs),
        "cpu_hours": sum(r.cpu for r in runs) / 3600,
    }


def rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return a row for each problem, method and settings, in their order."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        task = run.task
        groups.setdefault((task.problem, task.method, repr(sorted(task.settings.items()))), []).append(run)
    return [row(whole) for whole in groups.values()]


def markdown(compared: Sequence[dict[str, Any]], varied: Sequence[dict[str, Any]]) -> str:
    """Return both tables."""
    lines = [COMPARED, "|---" * (COMPARED.count("|") - 1) + "|"]
    for r in compared:
        lines.append(
            f"| ({r['problem']}) | {r['method']} | {r['starts']} | "
            + ", ".join(f"{v:.0%}" for v in r["feasible"].values())
            + f" | {_text(r['all_feasible'])} | "
            + ", ".join(_text(r["regret"][str(b)]) for b in BUDGETS)
            + f" | {_text(r['quartiles'][0])} to {_text(r['quartiles'][1])} | {_stopped(r)} | {_spent(r)} | "
            + f"{_share(r['answers_kept'])}, {_text(r['answer_regret'])} | {r['cpu']:.3f} |"
        )
    if varied:
        lines += ["", VARIED, "|---" * (VARIED.count("|") - 1) + "|"]
        for r in sorted(varied, key=lambda r: ("rho" not in r["settings"], *r["settings"].values())):
            settings = r["settings"]
            lines.append(
                f"| {settings.get('rho', 0.1):g} | {settings['penalty']:g} | {r['starts']} | {_text(r['all_feasible'])} | "
                + ", ".join(_text(r["regret"][b]) for b in ("50", "100", "inf"))
                + f" | {_stopped(r)} | {_spent(r)} | {_share(r['answers_kept'])} |"
            )
    return "\n".join(lines) + "\n"


def _stopped(r: dict[str, Any]) -> str:
    return f"{r['converged']:.0%}" if r["method"].startswith("admmbo") else "-"


def _spent(r: dict[str, Any]) -> str:
    return f"{r['spent']:.0f}, {r['most_spent']}, {r['budget']}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _number(value: float) -> float | None:
    """Return None for a number that is not finite, since JSON has no such numbers."""
    return value if math.isfinite(value) else None


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    last = len(ordered) - 1
    return ordered[round(0.25 * last)], ordered[round(0.75 * last)]
