"""Options and arguments shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[
    bool,
    typer.Option("--json", help="One JSON object per trial and one at the end on standard output, and nothing else."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the end.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the model; repeatable.")
]
JournalOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="An option of the model, as the journal holds it; repeatable."),
]
MostCost = Annotated[
    float | None,
    typer.Option(
        "--cost", min=1e-9, help="What evaluations may cost in all, by the model's COSTS; goes before --budget."
    ),
]
MostSteps = Annotated[
    int | None,
    typer.Option(
        "--steps", min=1, help="Steps (folds, epochs) that evaluations may take in all; goes before --budget."
    ),
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
Prune = Annotated[
    str | None,
    typer.Option(
        "--pruning", metavar="on|off|halving", help="Prune evaluations that report several steps (folds, epochs)."
    ),
]
Confirm = Annotated[
    str | None,
    typer.Option(
        metavar="N|replicate",
        help="Evaluate N finalists again and answer with the best of them, or repeat the best of a noisy objective; 0: neither.",
    ),
]
Journal = Annotated[Path, typer.Argument(metavar="RUN.DB", help="The journal of a run.")]
Direction = Annotated[
    str | None,
    typer.Option(metavar="minimize|maximize", help="Where the loss is to go; default: minimize, or as the model says."),
]
Objectives = Annotated[
    list[str] | None,
    typer.Option(
        "--objective",
        metavar="NAME",
        help="One of several outputs to minimise, or NAME=maximize; repeatable: a front is found.",
    ),
]
Place = Annotated[str, typer.Argument(metavar="RUN.DB", help="The journal of a run, or the address of a database.")]
ModelName = Annotated[
    str, typer.Argument(metavar="MODEL", help="A name of `mipcash models`, or the path of a Python file.")
]
