"""Section 4 (b): 28 hyperparameters of the variational autoencoder under their rules. All trainings are stored."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mipcash as mc
from benchmarks.paper import remembered
from benchmarks.paper.remembered import Remembered
from benchmarks.peers.problem import LOWER_BOUND, Config, Objective, Problem
from benchmarks.peers.problems import vae_proxy
from mipcash.models import vae

FOLDER = Path(__file__).resolve().parents[1] / "results" / "paper" / "vae"
OPTIONS: dict[str, dict[str, Any]] = {
    "small": {"train_size": 1000, "test_size": 100, "epochs": 6, "batch": 16, "seconds": "none", "device": "cpu", "threads": 1},
    "laptop": {"preset": "laptop", "device": "cpu", "threads": 1},
    "paper": {"preset": "paper"},
    "paper-mnist": {"preset": "paper", "data": "mnist"},
}
"""Name of a size -> options of the model.

``small`` takes a median of 10 CPU seconds, and 155 seconds for the largest network. With fewer steps the losses stay
near 202 nats, the loss of the mean image. On CPUs with one thread its losses do not depend on the load of the machine.
Losses of ``laptop`` do, since it has a time limit.
"""
WORST = 500.0
"""Nats of a training that ended without a finite loss: the paper's penalty, about that of uniformly random pixels."""


def _stamp(size: str) -> dict[str, Any]:
    given = vars(vae.settings(**OPTIONS[size]))
    return {k: given[k] for k in ("data", "train_size", "test_size", "epochs", "batch", "seconds", "samples", "seed")}


def machine(size: str) -> dict[str, Any]:
    """Return versions and the device of trainings on this machine."""
    from mipcash.models._vae_training import device_of, import_torch

    torch = import_torch()
    device = device_of(vae.settings(**OPTIONS[size]).device)
    name = f"cuda ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)
    threads = OPTIONS[size].get("threads", "all")
    return {"mipcash": version("mipcash"), "torch": torch.__version__, "device": name, "threads": threads}


def check(size: str) -> None:
    """Check that torch and the images are available.

    Raises:
        mipcash.errors.ModelError: what is missing, and how to get it.
    """
    vae.held_out(vae.settings(**OPTIONS[size]))


def _trained(size: str) -> Objective:
    evaluate = vae.build(**OPTIONS[size])[1]

    def objective(config: Config) -> float:
        try:
            loss = evaluate(config)["loss"]
        except FloatingPointError:  # the training diverged
            return WORST
        return loss if loss < WORST else WORST

    return objective


def _space() -> mc.Space:
    return vae.build()[0]


def _problem(size: str) -> Problem:
    return Problem(
        name=f"vae-{size}",
        space=_space,
        objective=Remembered(lambda: _trained(size), FOLDER / f"evaluations-{size}.jsonl", _stamp(size), lambda: machine(size)),
        stamp=_stamp(size),
        group="rules",
        optimum=0.0,
        certificate=LOWER_BOUND,
        source="Daxberger et al., Section 4 (b) and Table 2",
        tolerance=0.0,
    )


@cache
def problems() -> Mapping[str, Problem]:
    """Return the problems by name: ``vae-`` and a size, and the analytic ``vae-proxy`` of the peers benchmark."""
    return {f"vae-{size}": _problem(size) for size in OPTIONS} | {p.name: p for p in vae_proxy.PROBLEMS}


def hours() -> dict[str, float]:
    """Return the hours of all kept trainings."""
    return remembered.hours(p.objective for p in problems().values())


def machines() -> list[str]:
    """Return the machines of the kept evaluations."""
    return remembered.machines(p.objective for p in problems().values())
