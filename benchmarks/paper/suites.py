"""Suites of the paper's experiments for the runner of the peers benchmark."""

from __future__ import annotations

from pathlib import Path

from benchmarks.paper import synthetic, vae, xgboost
from benchmarks.peers.suite import Suite

FOLDER = Path(__file__).resolve().parents[1] / "results" / "paper"

SYNTHETIC = Suite("paper-synthetic", synthetic.problems, FOLDER / "synthetic", budget=50, conventions=("penalty-50",))
XGBOOST = Suite("paper-xgboost", xgboost.problems, FOLDER / "xgboost", budget=50, conventions=())
VAE = Suite(
    "paper-vae",
    vae.problems,
    FOLDER / "vae",
    budget=32,
    conventions=("penalty-500", "penalty-250", "penalty-125", "ignore"),
    named=("vae-paper", "vae-paper-mnist"),
)
SUITES = (SYNTHETIC, XGBOOST, VAE)
