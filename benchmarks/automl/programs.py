"""FLAML and TPOT with their own spaces, run by :mod:`benchmarks.automl.outside` in another interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.automl.data import Split, loss
from benchmarks.automl.record import Answer, Run
from benchmarks.automl.searches import steps_until
from benchmarks.automl.spaces import fold_numbers

INTERPRETER = "MIPCASH_AUTOML_PYTHON"
"""Environment variable of an interpreter with FLAML and TPOT. Both methods are left out if it is not set."""
PROGRAMS = ("flaml", "tpot")
PATIENCE = 1800.0
"""Timeout of a program in seconds."""


def is_installed(method: str) -> bool:
    """Return True if the interpreter is set and has the package of the method."""
    interpreter = os.environ.get(INTERPRETER)
    if not interpreter:
        return False
    command = [interpreter, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({method!r}) is None)"]
    return subprocess.run(command, check=False).returncode == 0


def run_program(method: str, split: Split, evaluations: int) -> Run:
    """Run a program anew for each number of STEPS up to ``evaluations``; the last run is described."""
    steps = steps_until(evaluations)
    with tempfile.TemporaryDirectory() as folder:
        job, out = Path(folder) / "job.npz", Path(folder) / "out.json"
        settings = {"task": split.task, "evaluations": steps, "seed": split.seed}
        arrays = {"x": split.x, "y": split.y, "x_fresh": split.x_fresh, "fold": fold_numbers(split)}
        np.savez(job, settings=json.dumps(settings), **arrays)
        command = [os.environ[INTERPRETER], str(Path(__file__).with_name("outside.py")), method, str(job), str(out)]
        done = subprocess.run(command, check=False, timeout=PATIENCE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if not out.is_file():
            raise RuntimeError(f"{method} ended with status {done.returncode}: {done.stderr[-2000:]}")
        told = json.loads(out.read_text(encoding="utf-8"))
    answers, seconds = {}, {}
    for n, run in zip(steps, told["runs"], strict=True):
        answers[f"best {n}"] = Answer(run["search"], loss(split.task, split.y_fresh, np.array(run["scores"])))
        seconds[f"search {n}"] = run["cpu"]
    last = told["runs"][-1]
    return Run(
        method,
        split.name,
        split.seed,
        "own",
        answers,
        evaluations=last["evaluations"],
        fits=last["fits"],
        seconds={"search": last["cpu"], **seconds},
        chosen=" ".join(last["chosen"].split()),
        stamp={**told["versions"], "evaluations": evaluations},
    )
