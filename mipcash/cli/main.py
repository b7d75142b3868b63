"""The command ``mipcash``: run, resume, show, models, solvers, check.

Exit codes: 0 done, 1 no evaluation succeeded or kept the limits (or the space is empty), 2 a mistake that a red line explains,
130 stopped by Ctrl-C (the run can be resumed).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from mipcash import __version__
from mipcash.cli import archive, consent, failures, limits, modelfile, tables
from mipcash.cli.plans import STANDARD, Plan, racing_said
from mipcash.errors import DefectError, InfeasibleSpaceError, MipcashError, ModelError, StorageError
from mipcash.study.finalists import text_of
from mipcash.study.text import visible

INTERRUPTED = 130

COUNT_LIMIT = 40
"""Legal configurations that `check` enumerates one by one where they cannot be counted at once."""
CHECK_SECONDS = 10.0
"""What each question of `check` may take; it says what is known by then."""

app = typer.Typer(
    name="mipcash",
    help="Find the best configuration of an expensive black box, under rules that are known in advance.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the end.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the model; repeatable.")
]
MostCost = Annotated[
    float | None,
    typer.Option(
        "--cost", min=1e-9, help="What evaluations may cost in all, by the model's COSTS; goes before --budget."
    ),
]
MostFits = Annotated[
    int | None, typer.Option("--fits", min=1, help="How many fits evaluations may take in all; goes before --budget.")
]
Limits = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=HIGH", help="Of an output; also NAME=LOW: or NAME=LOW:HIGH; repeatable."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Evaluations at a time, in threads.")]
Timeout = Annotated[float | None, typer.Option(min=0.001, help="Seconds after which no new evaluation starts.")]
SecondsPerProposal = Annotated[
    float | None, typer.Option(min=0.001, help="Seconds that a proposal may take; default 5, inf for no limit.")
]
EvaluationTimeout = Annotated[
    float | None, typer.Option(min=0.001, help="Seconds after which an evaluation is killed; default: no limit.")
]
EvaluationMemory = Annotated[
    float | None,
    typer.Option(min=0.001, help="Megabytes beyond which an evaluation is killed; default: no limit."),
]
Race = Annotated[
    str | None,
    typer.Option("--racing", metavar="on|off|halving", help="Whether evaluations in several fits are stopped early."),
]
Confirm = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Evaluate N finalists again and answer with the best of them; default: none."
    ),
]
Journal = Annotated[Path, typer.Argument(metavar="RUN.DB", help="The journal of a run.")]
ModelName = Annotated[
    str, typer.Argument(metavar="MODEL", help="A name of `mipcash models`, or the path of a Python file.")
]


# -- commands -------------------------------------------------------------------------------------------------------


@app.callback(invoke_without_command=True)
def version_or_help(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"mipcash {__version__}")
        raise typer.Exit


@app.command()
def run(
    model: ModelName,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Evaluations, earlier ones of the journal included.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed gives the same run.")] = None,
    solver: Annotated[str | None, typer.Option(help="A name of `mipcash solvers`, or the path of a profile.")] = None,
    solver_option: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE for the solver itself; may be repeated.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="The method that proposes configurations.")] = None,
    storage: Annotated[Path | None, typer.Option(help="The journal; default runs/MODEL-seedS.db.")] = None,
    timeout: Timeout = None,
    option: Options = None,
    limit: Limits = None,
    cost: MostCost = None,
    fits: MostFits = None,
    workers: Workers = None,
    seconds_per_proposal: SecondsPerProposal = None,
    evaluation_timeout: EvaluationTimeout = None,
    evaluation_memory: EvaluationMemory = None,
    racing: Race = None,
    confirm: Confirm = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew; an old journal is moved aside.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Optimise a model, or go on where an earlier run of it stopped."""
    with _errors(debug):
        options = _pairs(option or [])
        loaded = modelfile.load(model, options)
        given = {
            "budget": budget,
            "seed": seed,
            "solver": " ".join([solver or "auto", *solver_option]) if solver_option else solver,
            "optimizer": optimizer,
            "timeout": timeout,
            "workers": workers,
            "seconds_per_proposal": seconds_per_proposal,
            "evaluation_timeout": evaluation_timeout,
            "evaluation_memory": evaluation_memory,
            "racing": racing,
            "confirm": confirm,
        }
        plan = Plan.of(loaded, given, storage, options, limits.parsed(limit or []), quiet, cost, fits)
        if fresh and plan.storage.exists():
            _say(f"moved {plan.storage} aside to {archive.move_aside(plan.storage)}")
        if plan.storage.exists() and plan.storage.stat().st_size:
            old = archive.open_archive(plan.storage)
            if cost is None and fits is None and old.finished(plan.budget) and not plan.differs(old):
                _say(f"this run is finished ({old.told} evaluations); raise --budget to go on, --fresh starts anew\n")
                _close(old, None)
                return
        _run(loaded, plan)


@app.command()
def resume(
    journal: Journal,
    budget: Annotated[int | None, typer.Option(min=1, help="Evaluations in all; default: as before.")] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The model file; without it one that the journal names is asked for."),
    ] = None,
    solver: Annotated[str | None, typer.Option(help="The same for a solver that is more than a name.")] = None,
    trust: Annotated[
        list[Path] | None, typer.Option(metavar="FOLDER", help="Files that the journal names may lie here; repeatable.")
    ] = None,
    timeout: Timeout = None,
    workers: Workers = None,
    seconds_per_proposal: SecondsPerProposal = None,
    evaluation_timeout: EvaluationTimeout = None,
    evaluation_memory: EvaluationMemory = None,
    racing: Race = None,
    confirm: Confirm = None,
    cost: MostCost = None,
    fits: MostFits = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Go on with a run that was stopped, killed or given too small a budget."""
    with _errors(debug):
        old = archive.open_archive(journal)
        record = old.record
        total = budget or record.budget or old.told
        if cost is None and fits is None and record.model is not None and old.finished(total):
            _say(f"this run is finished ({old.told} evaluations); give a larger --budget to go on\n")
            _close(old, None)
            return
        chosen = consent.agreed(journal, record, consent.Said(model, solver, trust or ()))
        try:
            loaded = modelfile.load(chosen.model, record.options)
        except ModelError as error:
            raise ModelError(
                f"the model of {journal} cannot be loaded with the options it holds: {error}. Mend the model, or start a new "
                "journal"
            ) from error
        defaults = loaded.defaults
        plan = Plan(
            total,
            record.seed,
            chosen.solver,
            record.optimizer,
            timeout,
            workers or int(defaults.get("workers", 1)),
            seconds_per_proposal or defaults.get("seconds_per_proposal", STANDARD["seconds_per_proposal"]),
            evaluation_timeout or defaults.get("evaluation_timeout"),
            evaluation_memory or defaults.get("evaluation_memory"),
            racing_said(racing or defaults.get("racing")),
            defaults.get("confirm") if confirm is None else confirm,
            journal,
            record.options,
            {name: (low, high) for name, (low, high) in record.limits.items()},
            quiet,
            cost,
            fits,
        )
        _run(loaded, plan)


@app.command()
def show(
    journal: Journal,
    plot: Annotated[Path | None, typer.Option(help="The picture, .png or .svg; default: next to the journal.")] = None,
    top: Annotated[int | None, typer.Option(min=1, help="Only the best N trials, best first.")] = None,
    debug: Debug = False,
) -> None:
    """Table of trials, best configuration and convergence picture of a run, also while it goes on."""
    with _errors(debug):
        old = archive.open_archive(journal)
        result = old.result
        trials = list(result.history) if top is None else tables.best_first(result)[:top]
        _print(tables.trials_table(trials, result, f"{old.title}, {len(result.history)} trials"))
        for part in failures.failures_of(old):
            _say(part) if isinstance(part, str) else _print(part)
        _close(old, plot)


@app.command()
def models(debug: Debug = False) -> None:
    """The models that `mipcash run` knows by name."""
    with _errors(debug):
        _print(tables.models_table(modelfile.names()))


@app.command()
def solvers(debug: Debug = False) -> None:
    """Solvers: which are installed, their versions, what their licences allow."""
    with _errors(debug):
        from mipcash.backends.registry import solvers as known

        _print(tables.solvers_table(known()))


@app.command()
def check(model: ModelName, option: Options = None, debug: Debug = False) -> None:
    """Parameters, rules and program sizes of a model, with a legal example or the reason why there is none."""
    with _errors(debug):
        loaded = modelfile.load(model, _pairs(option or []))
        _say(f"{visible(loaded.title)}: {visible(loaded.description)}\n")
        sizes = loaded.space.sizes()
        try:
            example = loaded.space.sample(1, seed=0)[0]
        except InfeasibleSpaceError as reason:
            _print(tables.space_tables(loaded.space, sizes))
            _fail(f"no legal configuration exists: {reason}")
            raise typer.Exit(1) from None
        extents = loaded.space.bounds(time_limit=CHECK_SECONDS)
        _print(tables.space_tables(loaded.space, sizes, extents))
        if not all(extent.proven for extent in extents.values()):
            _say(f"there may be less under the rules: {CHECK_SECONDS:g} s are not enough to prove what is left\n")
        _say(f"legal discrete configurations: {loaded.space.count(COUNT_LIMIT, time_limit=CHECK_SECONDS)}\n")
        _print(tables.config_table(example, "a legal configuration"))


def main() -> None:
    """The entry point of the console script."""
    app()


# -- running --------------------------------------------------------------------------------------------------------


def _run(loaded: modelfile.Model, plan: Plan) -> None:
    from mipcash.study.minimize import run as run_study
    from mipcash.study.study import Study

    if plan.storage.parent == archive.FOLDER:
        plan.storage.parent.mkdir(exist_ok=True)
    if not plan.quiet:
        with_what = f"{plan.optimizer} and {plan.solver}, seed {plan.seed}"
        _say(visible(f"{loaded.title}: {plan.paying} with {with_what}"))
    try:
        # an objective may change the folder; the paths that the user gave are relative to this one
        with (
            contextlib.chdir(os.curdir),
            Study(
                loaded.space,
                plan.optimizer,
                plan.solver,
                seed=plan.seed,
                storage=plan.storage,
                limits=plan.limits,
                costs=plan.costs(loaded),
                seconds_per_proposal=plan.seconds_per_proposal,
                model=loaded.reference,
                options=plan.options,
            ) as study,
        ):
            result = run_study(
                study,
                loaded.objective,
                plan.pays,
                timeout=plan.timeout,
                workers=plan.workers,
                progress=False if plan.quiet else None,
                evaluation_timeout=plan.evaluation_timeout,
                evaluation_memory=plan.evaluation_memory,
                racing=plan.racing,
                confirm=plan.confirm,
            )
    except KeyboardInterrupt:
        _interrupted(plan)
    except DefectError as error:
        raise DefectError(f"{error}.\nTo go on, once it is mended: {_resume_command(plan.storage)}") from error
    report = _report(loaded, result)
    _close(archive.open_archive(plan.storage), None, "\n\n".join(t for t in (tables.safety(result), report) if t))
    if result.best is None:
        raise typer.Exit(1)


def _interrupted(plan: Plan) -> NoReturn:
    _say("\nstopped; nothing that was evaluated is lost. To go on:\n")
    _say(f"    {_resume_command(plan.storage)}\n")
    if plan.workers > 1:
        # Python waits for the threads of running evaluations before it exits, which Ctrl-C is meant to cut short. The
        # journal is closed and holds their trials.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    raise typer.Exit(INTERRUPTED)


def _resume_command(storage: Path) -> str:
    try:
        return consent.resume_command(storage, archive.open_archive(storage).record)
    except StorageError:  # interrupted before anything was written
        return consent.resume_command(storage)


def _report(loaded: modelfile.Model, result: Any) -> str:
    """What the model says about the result; its own failure must not hide the result."""
    if result.best is None:
        return ""
    try:
        return loaded.report(result)
    except Exception as error:
        from mipcash.study.reading import describe_error

        _fail(f"report() of {loaded.title} failed: {describe_error(error)}")
        return ""


def _close(old: archive.Archive, plot: Path | None, report: str = "") -> None:
    """The end of ``run``, ``resume`` and ``show``: best configuration, summary, report, picture, journal."""
    result = old.result
    if result.best is not None:
        _print(tables.best_table(result, f"best configuration of {old.record.space}"))
    elif result.under and result.nearest is not None:
        lacking = "nothing keeps all limits" if result.nearest.breaks else "no loss is known"
        _print(tables.config_table(result.nearest.config, f"{lacking}; {result.nearest}"))
    _print(tables.summary(result))
    if result.finalists:
        best = None if result.best is None else result.best.number
        _say("\n" + "\n".join(text_of(result.finalists, best)))
    if result.under:
        _say(f"\n{result.limits}")
    if report:
        _say(f"\n{report.rstrip()}")
    _say("")
    if result.history:
        _say(f"picture: {_picture(old, plot)}")
    _say(f"journal: {old.path}")
    if old.record.model is not None and old.record.budget and not old.finished(old.record.budget):
        _say(f"to go on: {consent.resume_command(old.path, old.record)}")


def _picture(old: archive.Archive, plot: Path | None) -> str:
    """Where the picture went, or how to get one."""
    from mipcash.report.convergence import drawable, plot_convergence

    if not drawable():
        command = ["mipcash", "show", str(old.path), *(["--plot", str(plot)] if plot else [])]
        return f"none without matplotlib; pip install 'mipcash[plots]', then {shlex.join(command)}"
    return str(plot_convergence(old.result, plot or archive.picture_path(old.path), old.title))


# -- printing and errors --------------------------------------------------------------------------------------------


def _pairs(options: list[str]) -> dict[str, str]:
    pairs = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key.isidentifier():
            raise ModelError(f"--option takes KEY=VALUE, such as --option folds=5; got {option!r}")
        pairs[key] = value
    return pairs


@contextmanager
def _errors(debug: bool) -> Iterator[None]:
    """One clean line and exit code 2 for what mipcash raises on purpose."""
    try:
        yield
    except MipcashError as error:
        if debug:
            _say(traceback.format_exc(), err=True)
        _fail(f"error: {error}", lines=isinstance(error, DefectError))
        raise typer.Exit(2) from None
    except BrokenPipeError:  # `mipcash show run.db | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _fail(message: str, lines: bool = False) -> None:
    """A red text; ``lines``: of several lines, as a traceback is."""
    for line in message.split("\n") if lines else [message]:
        Console(stderr=True, soft_wrap=True).print(tables.plain_text(line, "bold red"))


def _say(message: str, err: bool = False) -> None:
    typer.echo(visible(message, lines=True), err=err)


def _print(renderable: Any) -> None:
    # In a file or a pipe nothing is cut off at a terminal's edge.
    Console(width=None if sys.stdout.isatty() else 160).print(renderable)
