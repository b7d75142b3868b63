"""``mipcash work``: one of several workers of a study, each of which takes trials, evaluates them and records the outcomes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated

import typer

from mipcash.cli import options as opt
from mipcash.cli.printing import errors


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
