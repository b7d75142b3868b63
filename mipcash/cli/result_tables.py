"""Tables of the command line: trials, configurations, models, solvers and spaces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mipcash.cli.printing import plain_text
from mipcash.display import counted
from mipcash.modelling.domains import Permutation
from mipcash.report.data.convergence import curve, shared_objective
from mipcash.study.front import objectives_of
from mipcash.study.result import Result
from mipcash.study.trial import Trial
from mipcash.text import one_line, readable, visible

if TYPE_CHECKING:
    from mipcash.backends.registry import SolverInfo
    from mipcash.modelling.parameters import Parameter
    from mipcash.report.failures import Kind
    from mipcash.space.bounds import Extent
    from mipcash.space.space import Space

LEVELS_SHOWN = 100
"""Largest number of characters of a domain or a value in a table."""


def config_table(config: Mapping[str, Any], title: str) -> RenderableType:
    """Return a configuration, one row per parameter."""
    table = _table("parameter", "value")
    for name, value in config.items():
        table.add_row(plain_text(name), plain_text(show(value)))
    return _titled(title, table)


def best_first(result: Result) -> list[Trial]:
    """Return the trials that have a loss, sorted by violation of the outcome constraints, then by loss."""
    ranked = (result.history[k] for k in result.feasibility.ranked)
    return [t for t in ranked if t.done and t.loss is not None]


def comparison_table(results: Mapping[str, Result]) -> RenderableType:
    """Return one row per run: number of evaluations, the best value seen, and the trial that found it.

    The last column is the trial with which each run reached the worst of the runs' best values.

    Raises:
        MipcashError: the runs have several objectives, or different ones.
    """
    objective = shared_objective(r.objectives for r in results.values())
    curves = {name: curve(r) for name, r in results.items()}
    bests = [objective.sign * float(c.step_y[-1]) for c in curves.values() if c.step_y.size]
    shared = max(bests, default=math.nan)
    table = _table(
        "run",
        "evaluations",
        "failed",
        f"best {objective.word}",
        "at trial",
        "" if math.isnan(shared) else f"{shared * objective.sign:.6g} or better at trial",
    )
    for name, result in results.items():
        shown = curves[name]
        steps, reached = objective.sign * shown.step_y, ["", ""]
        if steps.size:
            reached = [str(int(shown.step_x[shown.reached(bound)]) - 1) for bound in (steps[-1], shared)]
        value = f"{objective.sign * float(steps[-1]):.6g}" if steps.size else "none"
        best = bool(steps.size) and float(steps[-1]) == min(bests)
        table.add_row(
            plain_text(name),
            str(result.n_evaluations),
            str(result.n_failed),
            value,
            *reached,
            style="green bold" if best else "",
        )
    return _titled(counted(len(results), "run"), table)


def trials_table(trials: Sequence[Trial], result: Result, title: str) -> RenderableType:
    """Return one row per trial: loss or status, violated constraints, times, and the configuration in short."""
    best, limited = result.best, ["violations"] if result.under else []
    names = [visible(n) for n in result.objectives.names] if result.objectives.several else [result.objectives.word]
    table = _table("trial", *names, *limited, "ask", "eval", "origin", "failure and configuration")
    for trial in trials:
        loss = _evaluated(trial) if trial.loss is None else f"{trial.loss:.6g}"
        loss = f"{loss} pruned at step {trial.steps}" if trial.pruned else loss
        values = [loss, *[""] * (len(names) - 1)] if trial.loss is None or len(names) == 1 else objectives_of(trial)
        ask, duration = trial.seconds.get("ask"), None if trial.known else trial.duration
        what = "  ".join(f"{k}={show(v)}" for k, v in trial.config.items())
        what = f"{_short(trial.message)}  {what}" if trial.failed else what
        violations = [] if trial.failed or trial.pending else result.violations(trial)
        style = "yellow" if trial.failed else "magenta" if violations else ""
        style = "green bold" if best is not None and trial.number == best.number else style
        table.add_row(
            str(trial.number),
            *map(plain_text, values),
            *([plain_text(_short(", ".join(map(str, violations))))] if limited else []),
            "" if ask is None else f"{ask:.2f} s",
            "" if duration is None else f"{duration:.2f} s",
            plain_text(trial.origin),
            plain_text(one_line(what), overflow="ellipsis", no_wrap=True),
            style=style,
        )
    return _titled(title, table)


def _evaluated(trial: Trial) -> str:
    """Return the requested outputs that are known of a trial without a loss; if there are none, its status."""
    reported = ", ".join(f"{n} {trial.values[n]:.6g}" for n in trial.evaluate if n in trial.values)
    return reported or trial.status


def failures_table(kinds: Sequence[Kind], numbers: int = 8) -> RenderableType:
    """Return one row per kind of failure: number of configurations, first trials, and settings with which it is more frequent."""
    table = _table("failure", "configurations", "trials", "where it fails")
    for kind in kinds:
        listed = ", ".join(str(t.number) for t in kind.trials[:numbers])
        more = ", ..." if len(kind.trials) > numbers else ""
        where = Text("\n").join(plain_text(one_line(str(share))) for share in kind.settings)
        table.add_row(plain_text(kind.name, "yellow"), str(len(kind.trials)), plain_text(listed + more), where)
    return _titled("failures", table)


def models_table(models: Mapping[str, str]) -> Table:
    table = _table("model", "what it is")
    for name, description in models.items():
        table.add_row(plain_text(name, style="bold"), plain_text(description))
    return table


def solvers_table(solvers: Sequence[SolverInfo]) -> Table:
    table = _table("solver", "installed", "licence", "how to install")
    for solver in solvers:
        installed = (
            plain_text(solver.version or "yes", style="green") if solver.installed else plain_text("no", style="yellow")
        )
        table.add_row(
            plain_text(solver.name, style="bold"), installed, plain_text(solver.licence), plain_text(solver.install)
        )
    return table


def space_tables(space: Space, sizes: Mapping[str, int], extents: Mapping[str, Extent] | None = None) -> RenderableType:
    """Return the parameters, their ranges under the rules, the rules, and the sizes of the program."""
    from mipcash.space.compiled import declaration_of  # imports Pyomo

    parameters = _table("parameter", "domain", "", *(["under the rules"] if extents else []))
    conditional = declaration_of(space).conditions.keys()
    for name, parameter in space.parameters.items():
        kind = "conditional" if name in conditional else ""
        parameters.add_row(
            plain_text(name), plain_text(_short(str(parameter.domain))), kind, *_left(name, parameter, extents)
        )
    for name, auxiliary in space.auxiliaries.items():
        parameters.add_row(plain_text(name), plain_text(_short(str(auxiliary.domain))), "auxiliary")
    rules = _table("rule", "")
    for name, rule in space.rules.items():
        rules.add_row(plain_text(name), "conditional" if rule.when else "")
    size = plain_text("program: " + ", ".join(f"{count} {what}" for what, count in sizes.items()))
    return Group(parameters, Text(), rules if space.rules else plain_text("no rules"), Text(), size, Text())


def _left(name: str, parameter: Parameter, extents: Mapping[str, Extent] | None) -> list[Text]:
    """Return the range under the rules if it is smaller than the domain, else an empty text; no cell at all without ``extents``."""
    if not extents:
        return []
    extent = extents.get(name)
    if extent is None:
        return [plain_text("never active")]
    domain = parameter.domain
    if isinstance(domain, Permutation):
        free = all(len(places) == len(domain.members) for _, places in extent.values or ())
        text = "" if free else "; ".join(f"{m} at {', '.join(map(str, t))}" for m, t in extent.values or ())
    elif extent.values is not None:
        whole = len(extent.values) == len(domain.values)
        text = "" if whole else ", ".join(map(str, extent.values))
    else:
        low, high = domain.low, domain.high  # type: ignore[union-attr]
        same = abs(extent.low - low) <= 1e-6 * (high - low) and abs(extent.high - high) <= 1e-6 * (high - low)
        text = "" if same else f"[{extent.low:.6g}, {extent.high:.6g}]"
    return [plain_text(_short(text if extent.proven else f"within {text}" if text else "not proven"))]


def show(value: Any) -> str:
    """Return a value for a table: floats with six digits, other values as Python writes them."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return _short(value if isinstance(value, str) else readable(value, repr))


def _short(text: str) -> str:
    return text if len(text) <= LEVELS_SHOWN else text[: LEVELS_SHOWN - 3] + "..."


def _titled(title: str, table: Table) -> RenderableType:
    return Group(plain_text(title, style="bold"), table, Text())


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in ("trial", "loss", "value", "ask", "eval") else "left")
    return table
