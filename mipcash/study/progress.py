"""Displays of a run in progress: a live bar on a terminal or in a notebook, otherwise one plain line per evaluation on stderr."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from importlib import import_module
from typing import Any, TextIO

from mipcash.errors import warn
from mipcash.optimizers.optimizer import Limit
from mipcash.study.feasibility import Feasibility, violated
from mipcash.study.front import Front, objectives_of
from mipcash.study.spending import Spending
from mipcash.study.trial import Trial
from mipcash.text import one_line, shown, visible

SELDOM = 50
"""Trials of several objectives are judged again once this share of them, 1 / SELDOM, is new."""
NOTES = 5
"""Number of messages below the bar of a notebook, the latest ones."""


class _Best:
    """The best of the trials so far, and the number of feasible ones.

    Trials of several objectives, and parts of decoupled evaluations, are judged together, which takes time that grows with their
    number. They are judged when the result is shown; with several objectives, once 2 % more trials are there.

    Attributes:
        trial: the best complete and feasible trial.
        feasible: number of feasible evaluations.
        front: number of trials on the Pareto front of several objectives.
    """

    def __init__(self) -> None:
        self.trial: Trial | None = None
        self.feasible = self.front = 0
        self._parts: list[Trial] = []
        self._judged = self._together = 0

    def add(self, trial: Trial, limits: Sequence[Limit]) -> None:
        """Count a trial."""
        in_parts = bool(trial.evaluate and limits)
        if trial.objectives.several or (in_parts and not trial.repeat):
            self._parts.append(trial)
        feasible = not in_parts and not violated(trial.outcome, limits)
        self.feasible += feasible and trial.done and not trial.known
        if feasible and trial.legal and trial.complete and not (trial.repeat or trial.objectives.several):
            self._improve(trial)

    def of(self, limits: Sequence[Limit]) -> _Best:
        """Return this, with all trials judged."""
        several = bool(self._parts) and self._parts[0].objectives.several
        if self._judged + (self._judged // SELDOM if several else 0) < len(self._parts):
            self._judged = len(self._parts)
            whole = Feasibility.of(self._parts, limits)
            if whole.objectives.several:
                self.front = len(Front.of(whole).rows)
            else:
                self.feasible += len(whole.kept) - self._together
                self._together = len(whole.kept)
                self._improve(whole.best)
        return self

    def _improve(self, trial: Trial | None) -> None:
        if trial is not None and trial.minimised is not None:
            least = math.inf if self.trial is None or self.trial.minimised is None else self.trial.minimised
            self.trial = trial if self.trial is None or trial.minimised < least else self.trial


class Progress:
    """Base class of the displays, which itself shows nothing. Derive from it to display a run in your own way."""

    def __init__(self) -> None:
        self.budget: float = 0
        self.spending = Spending(math.inf)
        self.evaluated_count: float = 0
        self.known_count = 0
        self.failed_count = 0
        self.limits: tuple[Limit, ...] = ()
        self.deadline: float | None = None
        self._began, self._before = time.monotonic(), 0.0
        self._best = _Best()

    def begin(self, title: str, budget: float, trials: Sequence[Trial]) -> None:
        """Start the display. ``trials`` are those of a resumed journal. The budget is in evaluations, steps or costs."""
        self.budget = budget
        for trial in trials:
            self._count(trial)
        self._began, self._before = time.monotonic(), self.evaluated_count

    def asking(self) -> None:
        """Show that the optimizer is computing a proposal."""

    def evaluating(self, trial: Trial) -> None:
        """Show that the objective is being evaluated."""

    def evaluated(self, trial: Trial) -> None:
        """Count and show an outcome that this run recorded."""
        self._count(trial)

    def evaluated_by_others(self, trial: Trial) -> None:
        """Count an outcome that another worker of the study recorded. It is not shown on its own."""
        self._count(trial)

    def note(self, text: str) -> None:
        """Show a message to the user: a warning, as there is no display."""
        warn(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        """End the display, for whatever reason the run ended."""

    @property
    def best(self) -> float:
        """Loss of the best complete and feasible trial so far, with the objective's own sign; inf before the first one."""
        found = self._best.of(self.limits).trial
        return math.inf if found is None or found.loss is None else found.loss

    @property
    def best_number(self) -> int | None:
        """Number of that trial; None before the first one."""
        found = self._best.of(self.limits).trial
        return None if found is None else found.number

    @property
    def feasible_count(self) -> int:
        """Number of evaluated configurations that satisfy the outcome constraints."""
        return self._best.of(self.limits).feasible

    def left(self) -> float:
        """Estimate the remaining seconds from the pace of evaluations so far, capped by the deadline; inf before the first one."""
        spent = self.evaluated_count - self._before
        each = (time.monotonic() - self._began) / spent if spent > 0 else math.inf
        rest = max(0.0, self.budget - self.evaluated_count)
        until = math.inf if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        return min(each * rest if rest else 0.0, until)

    def _count(self, trial: Trial) -> None:
        if trial.known:
            self.known_count += 1
        else:
            self.evaluated_count += 0 if trial.pending else self._count_of(trial)
            self.failed_count += trial.failed
        self._best.add(trial, self.limits)

    def _count_of(self, trial: Trial) -> float:
        """Return the number of evaluations or the cost of a trial, in the unit of the budget."""
        cost = self.spending.of(trial)
        return int(cost) if cost.is_integer() else cost

    def _best_text(self) -> str:
        best = self._best.of(self.limits)
        if best.front:
            return f"{best.front} on the front"
        if best.trial is not None:
            return f"{best.trial.loss:.6g} (#{best.trial.number})"
        return "none satisfies all constraints yet" if self.limits and self.evaluated_count > self.failed_count else "-"


class Lines(Progress):
    """Print one line per evaluation, for logs."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream

    def begin(self, title: str, budget: float, trials: Sequence[Trial]) -> None:
        super().begin(title, budget, trials)
        known = f"{self.known_count} evaluations made outside the study, " if self.known_count else ""
        if self.evaluated_count:
            total = f" of {budget:.10g}" if math.isfinite(budget) else ""
            unit = "steps" if self.spending.by_steps else "evaluations" if not self.spending.costs else "units of cost"
            known += f"resumed after {spent_text(self.evaluated_count)}{total} {unit}, "
        if known:
            self._print(f"{title}: {known}best {self._best_text()}")

    def evaluated(self, trial: Trial) -> None:
        super().evaluated(trial)
        left = self.left()
        rest = f"  left {_seconds(left)}" if 0.0 < left < math.inf else ""
        self._print(line(trial, self.evaluated_count, self.budget, self._best_text(), self.limits) + rest)

    def note(self, text: str) -> None:
        self._print(f"note: {text}")

    def _print(self, text: str) -> None:
        # Look stderr up for each line, because tests and notebooks replace sys.stderr while a program runs.
        with suppress(OSError, ValueError):  # a closed terminal or pipe, or a full disk, must not end a run
            print(visible(text), file=self._stream or sys.stderr, flush=True)


class Bar(Progress):
    """Live bar with the best and latest values, failures, mean times and the estimated time left.

    Output of the objective appears above the bar; output of other processes may interfere with the bar.
    """

    def __init__(self, console: Any = None) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as RichProgress
        from rich.text import Text

        class TwoLines(RichProgress):
            """Progress bar with a second line below, for text that does not fit into 80 columns."""

            def get_renderables(self) -> Iterable[Any]:
                yield from super().get_renderables()
                for task in self.tasks:
                    yield Text(f"  {task.fields['state']}", overflow="ellipsis", no_wrap=True)

        self._bar = TwoLines(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[doing]}[/dim]"),
            console=console or Console(stderr=True),
            refresh_per_second=5,
        )
        self._task: Any = None
        self._last = "-"
        self._asks: list[float] = []
        self._evaluations: list[float] = []

    def begin(self, title: str, budget: float, trials: Sequence[Trial]) -> None:
        super().begin(title, budget, trials)
        self._task = self._bar.add_task(
            one_line(title, 160),
            total=max(budget, self.evaluated_count) if math.isfinite(budget) else None,
            completed=round(self.evaluated_count),
            state="",
            doing="",
        )
        self._bar.start()
        if self.known_count:
            self.note(f"{self.known_count} evaluations made outside the study, best {self._best_text()}")

    def asking(self) -> None:
        self._show("asking")

    def evaluating(self, trial: Trial) -> None:
        self._show(f"evaluating #{trial.number}")

    def evaluated(self, trial: Trial) -> None:
        super().evaluated(trial)
        self._last = "failed" if trial.failed else "-" if trial.loss is None else f"{trial.loss:.6g}"
        broken = _broken(trial, self.limits)
        self._last += f" (pruned at step {trial.steps})" if trial.pruned else ""
        self._last += f" (violates {broken})" if broken else ""
        self._asks.append(trial.seconds.get("ask", 0.0))
        self._evaluations.append(trial.duration or 0.0)
        if trial.failed:
            self._above(f"trial {trial.number} failed: {trial.message}", "yellow")
        self._bar.update(self._task, completed=self.evaluated_count)
        self._show("")

    def note(self, text: str) -> None:
        self._above(f"note: {text}", "bold yellow")

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def _above(self, text: str, style: str) -> None:
        """Print a line above the bar. Text objects, unlike strings, are not parsed for rich's markup and emoji codes."""
        from rich.text import Text

        self._bar.console.print(Text(one_line(text, 200), style=style))

    def _show(self, doing: str) -> None:
        parts = [f"best {self._best_text()}", f"last {self._last}"]
        if self.limits and self.evaluated_count > self.failed_count:
            parts.append(f"feasible {self.feasible_count}")
        if self.failed_count:
            parts.append(f"{self.failed_count} failed")
        if self._evaluations:
            n = len(self._evaluations)
            parts += [f"ask {_seconds(sum(self._asks) / n)}", f"eval {_seconds(sum(self._evaluations) / n)}"]
            left = self.left()
            parts += [f"left {_seconds(left)}"] if left < math.inf else []
        self._bar.update(self._task, state="  ".join(parts), doing=doing)


class NotebookBar(Progress):
    """Progress bar in a Jupyter notebook: one HTML output, replaced after each evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self._title, self._notes = "", list[str]()
        self._output: Any = None

    def begin(self, title: str, budget: float, trials: Sequence[Trial]) -> None:
        super().begin(title, budget, trials)
        self._title = title
        self._update()

    def asking(self) -> None:
        self._update("asking")

    def evaluating(self, trial: Trial) -> None:
        self._update(f"evaluating #{trial.number}")

    def evaluated(self, trial: Trial) -> None:
        super().evaluated(trial)
        if trial.failed:
            self._notes.append(f"trial {trial.number} failed: {trial.message}")
        self._update()

    def note(self, text: str) -> None:
        self._notes.append(f"note: {text}")
        self._update()

    def __exit__(self, *error: object) -> None:
        self._update("interrupted" if any(error) else "")

    def _update(self, doing: str = "") -> None:
        notebook: Any = import_module("IPython.display")  # every Jupyter kernel has IPython
        page = notebook.HTML(self._html(doing))
        if self._output is None:
            self._output = notebook.display(page, display_id=True)
        else:
            self._output.update(page)

    def _html(self, doing: str) -> str:
        spent = spent_text(self.evaluated_count)
        parts = [
            of_budget(self.evaluated_count, self.budget),
            f"best {self._best_text()}",
            f"{self.failed_count} failed" if self.failed_count else "",
        ]
        left = self.left()
        parts += [f"left {_seconds(left)}" if 0.0 < left < math.inf else "", doing]
        rows = [f"<b>{escape(one_line(self._title, 160))}</b>"]
        bar = f' value="{spent}" max="{self.budget:.10g}"' if math.isfinite(self.budget) else ""
        rows.append(f"<progress{bar}></progress> {escape(' · '.join(filter(None, parts)))}")
        rows += [escape(one_line(note, 200)) for note in self._notes[-NOTES:]]
        return "<br>".join(rows)


def in_notebook() -> bool:
    """Return True in the kernel of a Jupyter notebook."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


def make_progress(progress: bool | Progress | None) -> Progress:
    """Return the display for ``minimize(progress=...)``: for None a bar in a notebook and on a terminal, otherwise lines."""
    if isinstance(progress, Progress):
        return progress
    if not (progress is None or isinstance(progress, bool)):
        raise TypeError(
            f"progress must be True, False, None, or an object of a class derived from Progress; got {shown(progress)}"
        )
    if progress is False:
        return Progress()
    if in_notebook():
        return NotebookBar()
    return Bar() if progress or sys.stderr.isatty() else Lines()


def spent_text(spent: float) -> str:
    """Return the part of a budget that is spent, with two decimals unless it is whole."""
    return f"{spent:.10g}" if spent == round(spent) else f"{spent:.2f}"


def of_budget(spent: float, budget: float) -> str:
    """Return ``3/40``, aligned, or ``3`` if the budget is not limited."""
    if budget == math.inf:
        return spent_text(spent)
    total = f"{budget:.10g}"
    return f"{spent_text(spent):>{len(total)}}/{total}"


def line(trial: Trial, reported: float, budget: float, best: str, limits: Sequence[Limit] = ()) -> str:
    """Return the line of one evaluation, e.g. ``[ 3/40] #2 loss 0.0312  best 0.0298 (#1)  ask 0.1 s  eval 1.4 s  acquisition``."""
    broken = _broken(trial, limits)
    times = f"ask {_seconds(trial.seconds.get('ask', 0.0))}  eval {_seconds(trial.duration or 0.0)}"
    what = _trial_text(trial) + (f" violates {broken}" if broken else "")
    return f"[{of_budget(reported, budget)}] #{trial.number} {what}  best {best}  {times}  {one_line(trial.origin)}".rstrip()


def _broken(trial: Trial, limits: Sequence[Limit]) -> str:
    """Return the violated constraints of a trial as text; empty if the whole trial failed."""
    found = () if trial.failed else violated(trial.outcome, limits)
    return one_line(", ".join(str(violation) for violation in found if violation.known), 80)


def _trial_text(trial: Trial) -> str:
    if trial.failed:
        return f"failed: {one_line(trial.message, 160)}"
    if trial.loss is not None and trial.objectives.several:
        return ", ".join(f"{n} {v}" for n, v in zip(trial.objectives.names, objectives_of(trial), strict=True))
    if trial.loss is not None:
        word = trial.objectives.word
        if trial.pruned:
            return f"{word} about {trial.loss:.6g}, pruned at step {trial.steps}"
        return f"{word} {trial.loss:.6g}" + ("" if trial.at_full_fidelity else " at a low fidelity")
    return one_line(", ".join(f"{name} {value:.6g}" for name, value in trial.values.items()), 160)


def _seconds(seconds: float) -> str:
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 99.5:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d} min"
