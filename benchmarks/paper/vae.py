"""Section 4 (b): the 28 hyperparameters of the variational autoencoder under their rules.

An evaluation takes seconds to minutes, so all of them are kept beside the histories: methods share their initial designs,
and an interrupted run finds what it had.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import mipcash as mc
from benchmarks.peers import history
from benchmarks.peers.problem import Config, Objective, Problem
from benchmarks.peers.problems import vae_proxy
from benchmarks.peers.shape import Shape
from mipcash.models import vae

FOLDER = Path(__file__).resolve().parents[1] / "results" / "paper" / "vae"
OPTIONS: dict[str, dict[str, Any]] = {
    "small": {"train_size": 1000, "test_size": 100, "epochs": 6, "batch": 16, "device": "cpu", "threads": 1},
    "laptop": {"preset": "laptop", "device": "cpu", "threads": 1},
    "paper": {"preset": "paper"},
}
"""Name of a size -> options of the model. ``small`` takes some 5 s; with fewer steps the losses stay near 202 nats, those of
the mean image; on CPUs and with one thread its losses do not depend on the machine's load."""
WORST = 500.0
"""Nats of a training that ended without a finite loss: the paper's penalty, about those of uniformly random pixels."""


class Remembered:
    """An objective whose evaluations are kept in a file, a line of JSON each.

    Attributes:
        make: makes the objective; called only when something is to be evaluated.
        path: the file.
        stamp: what the loss depends on beside the configuration; evaluations of another stamp are not used.
    """

    def __init__(self, make: Callable[[], Objective], path: Path, stamp: Mapping[str, Any] | None = None) -> None:
        self.make, self.path, self.stamp = make, path, dict(stamp or {})
        self._objective: Objective | None = None

    def __call__(self, config: Config) -> float:
        key = _key(config)
        for record in self.records():
            if record["config"] == key and record["stamp"] == self.stamp:
                return float(record["loss"])
        if self._objective is None:
            self._objective = self.make()
        began = time.process_time()
        loss = self._objective(config)
        spent = round(time.process_time() - began, 2)
        line = {"config": key, "loss": loss, "seconds": spent, "stamp": self.stamp}
        history.append_line(self.path, json.dumps(line))
        return loss

    def records(self) -> list[dict[str, Any]]:
        """What is kept: configuration, loss and CPU seconds."""
        return [json.loads(line) for line in history.lines(self.path)]


def _key(config: Config) -> dict[str, Any]:
    return json.loads(json.dumps(dict(sorted(config.items())), default=lambda v: v.item()))


def _stamp(size: str) -> dict[str, Any]:
    given = vars(vae.settings(**OPTIONS[size]))
    return {k: given[k] for k in ("data", "train_size", "test_size", "epochs", "batch", "seconds", "samples", "seed")}


def _trained(size: str) -> Objective:
    evaluate = vae.build(**OPTIONS[size])[1]

    def objective(config: Config) -> float:
        try:
            loss = evaluate(config)["loss"]
        except FloatingPointError:  # training diverged
            return WORST
        return loss if loss < WORST else WORST

    return objective


def _space() -> mc.Space:
    return vae.build()[0]


def _problem(size: str) -> Problem:
    return Problem(
        name=f"vae-{size}",
        space=_space,
        objective=Remembered(lambda: _trained(size), FOLDER / f"evaluations-{size}.jsonl", _stamp(size)),
        stamp=_stamp(size),
        group="rules",
        optimum=0.0,
        certificate="lower bound",
        source="Daxberger et al., Section 4 (b) and Table 2",
        tolerance=0.0,
    )


@cache
def problems() -> Mapping[str, Problem]:
    """By name: ``vae-small``, ``vae-laptop`` and ``vae-paper``; ``vae-proxy``, the analytic stand-in of the peers benchmark."""
    return {f"vae-{size}": _problem(size) for size in OPTIONS} | {p.name: p for p in vae_proxy.PROBLEMS}


def hours() -> dict[str, float]:
    """CPU hours of all trainings that are kept."""
    kept = [p.objective for p in problems().values() if isinstance(p.objective, Remembered)]
    return {"trainings": sum(r["seconds"] for objective in kept for r in objective.records()) / 3600}


def uniform_violations(at: tuple[int, ...] = (16, 32), seeds: range = range(8)) -> list[tuple[float, float]]:
    """Illegal draws until so many legal ones, where every parameter is drawn uniformly and without a look at the rules.

    Returns:
        mean and standard deviation over the seeds, for each number of ``at``: the paper's random search in Table 4.
    """
    shape, counts = Shape(_space()), []
    for seed in seeds:
        rng, legal, drawn, found = np.random.default_rng(seed), 0, 0, []
        while legal < max(at):
            config = shape.active({d.name: d.draw(rng) for d in shape.dimensions})
            drawn += 1
            if not shape.violations(config):
                legal += 1
                if legal in at:
                    found.append(drawn - legal)
        counts.append(found)
    return [(float(np.mean(c)), float(np.std(c, ddof=1))) for c in zip(*counts, strict=True)]
