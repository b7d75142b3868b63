"""The command ``mipcash``: run, resume, work, show, compare, report, dash, models, solvers, check.

Exit codes: 0 success, 1 no evaluation succeeded or was feasible (of ``check``: the space is empty), 2 an error that a red line
explains, 130 stopped by Ctrl-C or by ``sys.exit`` of the objective (the run can be resumed).

A command imports its modules when it runs, so that ``mipcash --help`` loads no solver, Pyomo or SciPy.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from mipcash import __version__
from mipcash.cli import options as opt
from mipcash.cli.printing import errors, fail, say, show_table
from mipcash.cli.report import compare, dash, report
from mipcash.errors import InfeasibleSpaceError, ModelError
from mipcash.text import visible

COUNT_LIMIT = 40
"""Number of legal configurations up to which `check` enumerates them if they cannot be counted directly."""
CHECK_SECONDS = 10.0
"""Time limit for each computation of `check`; it prints what is known by then."""

app = typer.Typer(
    name="mipcash",
    help="Find the best configuration of an expensive black box, under rules that are known in advance.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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
    context: typer.Context,
    model: opt.ModelName,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Evaluations, earlier ones of the journal included.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed gives the same run.")] = None,
    solver: Annotated[str | None, typer.Option(help="A name of `mipcash solvers`, or the path of a profile.")] = None,
    solver_option: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE for the solver itself; may be repeated.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="The method that proposes configurations.")] = None,
    direction: opt.Direction = None,
    objective: opt.Objectives = None,
    storage: Annotated[
        str | None, typer.Option(help="The journal, or the address of a database; default runs/MODEL-seedS.db.")
    ] = None,
    timeout: opt.Timeout = None,
    option: opt.Options = None,
    limit: opt.Limits = None,
    cost: opt.MostCost = None,
    steps: opt.MostSteps = None,
    workers: opt.Workers = None,
    seconds_per_proposal: opt.SecondsPerProposal = None,
    evaluation_timeout: opt.EvaluationTimeout = None,
    evaluation_memory: opt.EvaluationMemory = None,
    pruning: opt.Prune = None,
    confirm: opt.Confirm = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew; the journal that is there is renamed.")] = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Optimise a model, or resume an earlier run of it."""
    with errors(debug), ExitStack() as stack:
        from mipcash.cli import archive, ending, json_lines, limits, modelfile, running
        from mipcash.cli.plans import Plan, typed_options
        from mipcash.study.storage.registry import move_aside

        stream = stack.enter_context(json_lines.kept_for_json(as_json))
        options = modelfile.pairs(option or [])
        loaded = modelfile.load(model, options)
        given = typed_options(context.params)
        if wrong := [text for text in solver_option or () if "=" not in text]:
            raise ModelError(f"--solver-option takes KEY=VALUE, such as MIPFocus=1; got {wrong[0]!r}")
        if solver_option:
            given["solver"] = " ".join([solver or loaded.defaults.get("solver", "auto"), *solver_option])
        place = None if storage is None else archive.storage_of(storage, loaded.space.name)
        plan = Plan.of(loaded, given, place, options, limits.parsed(limit or []), context.params)
        if fresh and (old_path := move_aside(plan.storage)) is not None:
            say(visible(f"the journal that was there is {old_path} now"))
        if archive.started(plan.storage):
            old = archive.open_archive(plan.storage)
            if plan.done(old, confirm):
                ending.finished(old, stream)
                return
        running.start(plan, stream)


@app.command()
def resume(
    context: typer.Context,
    journal: opt.Journal,
    budget: Annotated[int | None, typer.Option(min=1, help="Evaluations in all; default: as before.")] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The model file; default: that of the journal, after a question."),
    ] = None,
    solver: Annotated[
        str | None, typer.Option(help="Solver of the journal, if it is a profile or has options.")
    ] = None,
    trust: Annotated[
        list[Path] | None, typer.Option(metavar="FOLDER", help="Files that the journal names may lie here; repeatable.")
    ] = None,
    option: opt.JournalOptions = None,
    timeout: opt.Timeout = None,
    workers: opt.Workers = None,
    seconds_per_proposal: opt.SecondsPerProposal = None,
    evaluation_timeout: opt.EvaluationTimeout = None,
    evaluation_memory: opt.EvaluationMemory = None,
    pruning: opt.Prune = None,
    confirm: opt.Confirm = None,
    cost: opt.MostCost = None,
    steps: opt.MostSteps = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Resume a run that was stopped, killed or given too small a budget."""
    with errors(debug), ExitStack() as stack:
        from mipcash.cli import archive, consent, ending, json_lines, modelfile, running
        from mipcash.cli.plans import Plan, of_study, typed_options

        stream = stack.enter_context(json_lines.kept_for_json(as_json))
        old = archive.open_archive(journal)
        record = old.record
        total = budget or record.budget or old.n_evaluated
        by_number = cost is None and steps is None and record.model is not None
        if by_number and not (budget or record.budget or record.stopped):
            raise ModelError(
                f"the run of {journal} did not end, and its budget is not known; give --budget N, or --steps or --cost as before"
            )
        if by_number and model is None and old.finished(total, confirm):
            ending.finished(old, stream)
            return
        chosen, by_solver, options = consent.agreed(journal, record, context.params)
        try:
            loaded = modelfile.load(chosen, options)
        except ModelError as error:
            raise ModelError(
                f"the model of {journal} cannot be loaded with its options: {error}. Correct the model, or start a new "
                "journal"
            ) from error
        if confirm is None and "confirm" not in loaded.defaults and any(t.repeat for t in old.result.history):
            raise ModelError(
                f"{journal} has repeats of finalists, and a journal does not store how they were chosen: give --confirm N or "
                "--confirm replicate as before, or --confirm 0 for none"
            )
        given = {**typed_options(context.params), "budget": total}
        loaded, given = of_study(record, by_solver, loaded, given)
        plan = Plan.of(loaded, given, journal, options, {}, context.params)
        if by_number and plan.done(old, confirm):
            ending.finished(old, stream)
            return
        running.start(plan, stream)


@app.command()
def show(
    journal: opt.Place,
    plot: Annotated[Path | None, typer.Option(help="Draw the convergence in this file, .png or .svg.")] = None,
    top: Annotated[int | None, typer.Option(min=1, help="Only the best N trials, best first.")] = None,
    last: Annotated[int, typer.Option(min=1, help="Only the last N trials.")] = 200,
    debug: opt.Debug = False,
) -> None:
    """Show the trials and the best configuration of a run, also while it is running."""
    with errors(debug):
        from mipcash.cli import archive, ending, result_tables
        from mipcash.report.failures import failing

        if plot is not None:
            from mipcash.report.drawing import needs_matplotlib

            needs_matplotlib()
        old = archive.open_archive(archive.place_of(journal))
        result = old.result
        trials = result.history[-last:] if top is None else result_tables.best_first(result)[:top]
        part = f", the last {last}" if top is None and last < len(result.history) else ""
        show_table(result_tables.trials_table(trials, result, f"{old.title}, {len(result.history)} trials{part}"))
        if kinds := failing(old.record.listing, result.history):
            show_table(result_tables.failures_table(kinds))
        ending.close(old, plot)


app.command()(compare)
app.command()(report)
app.command()(dash)


@app.command()
def models(debug: opt.Debug = False) -> None:
    """List the models that `mipcash run` knows by name."""
    with errors(debug):
        from mipcash.cli import modelfile, result_tables

        show_table(result_tables.models_table(modelfile.names()))


@app.command()
def solvers(debug: opt.Debug = False) -> None:
    """List solvers, with their versions and licences, and whether they are installed."""
    with errors(debug):
        from mipcash.backends.registry import solvers as known
        from mipcash.cli import result_tables

        show_table(result_tables.solvers_table(known()))


@app.command()
def check(model: opt.ModelName, option: opt.Options = None, debug: opt.Debug = False) -> None:
    """Show the parameters, rules and program sizes of a model, with a legal configuration or the reason why there is none."""
    with errors(debug):
        from mipcash.cli import modelfile, result_tables

        loaded = modelfile.load(model, modelfile.pairs(option or []))
        say(f"{visible(loaded.title)}: {visible(loaded.description)}\n")
        sizes = loaded.space.sizes()
        try:
            example = loaded.space.sample(1, seed=0)[0]
        except InfeasibleSpaceError as reason:
            show_table(result_tables.space_tables(loaded.space, sizes))
            fail(f"no legal configuration exists: {reason}")
            raise typer.Exit(1) from None
        extents = loaded.space.bounds(time_limit=CHECK_SECONDS)
        show_table(result_tables.space_tables(loaded.space, sizes, extents))
        if not all(extent.proven for extent in extents.values()):
            say(f"there may be less under the rules: {CHECK_SECONDS:g} s are not enough to prove what is left\n")
        say(f"legal discrete configurations: {loaded.space.count(COUNT_LIMIT, time_limit=CHECK_SECONDS)}\n")
        show_table(result_tables.config_table(example, "a legal configuration"))


@app.command()
def work(
    context: typer.Context,
    storage: Annotated[
        str,
        typer.Argument(
            metavar="STORAGE",
            help="The file of a journal, or the address of a database: postgresql://user@host/database.",
        ),
    ],
    model: Annotated[
        str, typer.Option("--model", metavar="FILE", help="The model: a Python file, or a name of `models`.")
    ],
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Evaluations of all workers together; default: the study's, else the model's."),
    ] = None,
    heartbeat_seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Seconds without heartbeat after which others take over this worker's trial; default 60."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of a new study.")] = None,
    solver: Annotated[
        str | None, typer.Option(help="Of a new study; or one of this study that is more than a name.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="Of a new study: the method that proposes.")] = None,
    direction: opt.Direction = None,
    objective: opt.Objectives = None,
    option: opt.Options = None,
    limit: opt.Limits = None,
    cost: opt.MostCost = None,
    steps: opt.MostSteps = None,
    timeout: opt.Timeout = None,
    workers: opt.Workers = None,
    seconds_per_proposal: opt.SecondsPerProposal = None,
    evaluation_timeout: opt.EvaluationTimeout = None,
    evaluation_memory: opt.EvaluationMemory = None,
    pruning: opt.Prune = None,
    confirm: opt.Confirm = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Run one of several workers of a study, on this machine or on any that reaches its database.

    The first worker starts the study. A worker that is stopped gives its trial back; other workers take over the trial of a dead
    one.
    """
    with errors(debug), _stopped_by_sigterm():
        from mipcash.cli import consent, ending, limits, modelfile, running
        from mipcash.cli.archive import address_of, open_archive
        from mipcash.cli.plans import Plan, of_study, typed_options
        from mipcash.study.storage.registry import exists

        options, typed = modelfile.pairs(option or []), limits.parsed(limit or [])
        loaded = modelfile.load(model, options)
        address = address_of(storage, loaded.space.name, heartbeat_seconds)
        given = typed_options(context.params)
        old = open_archive(address.with_password) if exists(address) else None
        if old is not None:
            record = old.record
            _, by_solver, agreed = consent.agreed(address.without_password, record, context.params)
            if agreed != options:
                options = agreed
                loaded = modelfile.load(model, options)
            loaded, given = of_study(record, by_solver, loaded, given)
        plan = Plan.of(loaded, given, address.with_password, options, typed, context.params)
        if old is not None and plan.done(old, confirm):
            ending.finished(old)
            return
        running.start(plan)


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Handle SIGTERM, by which a cluster ends a worker, like Ctrl-C, so that its trial is given back at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> None:
    """Run the console script."""
    # names may have characters that the terminal, or a file, does not take
    for stream in (s for s in (sys.stdout, sys.stderr) if isinstance(s, io.TextIOWrapper)):
        stream.reconfigure(errors="backslashreplace")
    app()
