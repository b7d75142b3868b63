"""The three experiments: problems, methods, budgets, and the results reported in the paper."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.paper import synthetic, table, vae
from benchmarks.paper.experiment import Experiment, Group
from benchmarks.paper.suites import SYNTHETIC, VAE, XGBOOST
from mipcash.models.vae import PRESETS

LIBRARIES = ("smac", "optuna-tpe", "hyperopt")
OTHERS = ("optuna-gp", "botorch")
"""Methods that are not in the paper, run on cheap problems."""
OURS = ("hybrid", "mivabo", "mivabo-paper")
LAPLACE = ("mivabo:prior=laplace", "mivabo-paper:prior=laplace")
COMMON = ("joint-gp", *LIBRARIES, *OTHERS, "random")
SENT = "joint-gp:illegal=send"
"""GPyOpt's treatment of rules: points made illegal by rounding are suggested unchanged."""
RULED = ("joint-gp", SENT, *LIBRARIES, "random")
"""Methods compared under rules. For the other methods an hour buys only a dozen evaluations."""
GIVEN = "; ten legal configurations are given to every library, and cost none of the violations"


def _drawn(name: str) -> tuple[str, ...]:
    return tuple(f"{name}-{k}" for k in range(synthetic.FUNCTIONS))


def _normalised(problem: str, loss: float) -> float:
    least, most = synthetic.RANGES[problem]
    return (loss - least) / (most - least)


FUNCTIONS = (
    "Runs: see the column, over four draws of the function; the paper: 16. 50 evaluations; the paper's number, and how many "
    "functions it has, cannot be read from its text. Errors are normalised by the true extremes, the paper's by observed ones; "
    "reals in [-1, 1]. `prior=laplace` is inferred by Gibbs sampling in `mivabo`, by a variational bound in `mivabo-paper` and "
    "the paper"
)

SYNTHETIC_EXPERIMENT = Experiment(
    name="paper-synthetic",
    title="Synthetic functions, Appendix A (Figs. 4 and 5)",
    suite=SYNTHETIC,
    at=(16, 32, 50),
    unit="normalised error",
    seeds={"smoke": (0,), "quick": (0,), "full": range(4)},
    value=_normalised,
    groups=(
        Group(
            "a1-gaussian",
            "A.1, Gaussian weights, no rule",
            _drawn("a1-gaussian"),
            (*OURS, *LAPLACE, *COMMON),
            FUNCTIONS,
            "Paper, Fig. 4 left (curves only, no numbers): MiVaBO outperforms SMAC, TPE, GPyOpt and random search.",
        ),
        Group(
            "a1-laplace",
            "A.1, Laplace weights pruned to a sparse vector, no rule",
            _drawn("a1-laplace"),
            (*OURS, *LAPLACE, *COMMON),
            FUNCTIONS,
            "Paper, Fig. 4 right: MiVaBO with a sparse prior outperforms its competitors, MiVaBO with a Gaussian prior included.",
        ),
        Group(
            "a2-cardinality",
            "A.2, Gaussian weights, at most two of eight bits",
            _drawn("a2-cardinality"),
            (*OURS, SENT, *COMMON),
            FUNCTIONS + "; penalty: 50 for an illegal suggestion, which costs no evaluation" + GIVEN,
            "Paper, Fig. 5: MiVaBO outperforms its competitors, which are told a large penalty and have to learn the rule.",
        ),
    ),
)

TABLES = (
    "Runs: see the column; the paper: 16. Nearest of 20,000 evaluations made here, of some 4,150 trainings that are read at "
    "several numbers of rounds, on the models' scales; the paper: of over 45,000 of OpenML"
)

XGBOOST_EXPERIMENT = Experiment(
    name="paper-xgboost",
    title="Gradient boosting, Section 4 (a) (Fig. 1)",
    suite=XGBOOST,
    at=(16, 32, 50),
    unit="held-out error",
    evaluations=table.hours,
    seeds={"smoke": (0,), "quick": range(4), "full": range(16)},
    groups=(
        Group(
            "monks",
            "XGBoost on monks-problem-1, from the table",
            ("monks-table",),
            (*OURS, *COMMON),
            TABLES,
            "Paper, Fig. 1 left (curves only): MiVaBO significantly outperforms the others; GPyOpt performs poorly.",
        ),
        Group(
            "phoneme",
            "XGBoost on phoneme, from the table",
            ("phoneme-table",),
            (*OURS, *COMMON),
            TABLES + "; data: 1,000 rows of phoneme in place of steel-plates-fault",
            "Paper, Fig. 1 right, on steel-plates-fault: MiVaBO is competitive with SMAC and TPE.",
        ),
    ),
)

PAPER_VAE = """
Paper, Table 1, MNIST, 60,000 images, 32 epochs, nats after 32 evaluations over 8 initialisations: SMAC 106.69 ± 1.51, TPE
103.28 ± 0.49, GPyOpt 103.25 ± 0.58, random 102.04 ± 0.41, MiVaBO 91.29 ± 0.69 (10.5 % below random).

Paper, Tables 3 and 4, after 16 evaluations, by penalty in nats:

| method | 500 | 250 | 125 | violations at 500 | at 250 | at 125 |
|---|---|---|---|---|---|---|
| SMAC | 113.0 ± 1.8 | 112.1 ± 1.8 | 111.1 ± 1.6 | 37 ± 21.7 | 36 ± 21.9 | 28 ± 11.6 |
| TPE | 108.8 ± 1.2 | 108.1 ± 1.3 | 108.1 ± 1.3 | 67 ± 21.3 | 68 ± 22.2 | 68 ± 22.2 |
| GPyOpt | 108.5 ± 1.1 | 108.5 ± 0.6 | 106.5 ± 1.4 | 36 ± 19.3 | 32 ± 18.0 | 27 ± 10.4 |
| random | 106.3 ± 0.9 | | | 71 ± 25.5 | | |
| MiVaBO | 94.4 ± 0.8 | | | 0 | | |

Fig. 2: MiVaBO is below all others throughout, on MNIST and on FashionMNIST; random search comes second; the annealed
variants struggle. In ours, `joint-gp` is the relax-and-round of GPyOpt with each point moved to the nearest legal
configuration, and `joint-gp:illegal=send` suggests it as GPyOpt does; `random` draws among the legal ones. `smac` is told
conditions and, where they can be listed, forbidden combinations; `optuna-tpe` the amounts by which rules are broken;
`hyperopt` conditions alone. Uniform draws without a look at the rules break them 555 ± 123 times until 16 legal ones,
1106 ± 171 until 32 (8 seeds; commit 81a34f6 has the code), against the paper's 71 ± 25.5; why it has so few cannot be read
from it (without PyTorch's rule that output padding is smaller than the stride there are 3 % fewer).
"""

POINTS = {
    "smac": ("SMAC", {16: (113.0, 1.8), 32: (106.69, 1.51)}),
    "hyperopt": ("TPE", {16: (108.8, 1.2), 32: (103.28, 0.49)}),
    SENT: ("GPyOpt", {16: (108.5, 1.1), 32: (103.25, 0.58)}),
    "random": ("random", {16: (106.3, 0.9), 32: (102.04, 0.41)}),
    "mivabo": ("MiVaBO", {16: (94.4, 0.8), 32: (91.29, 0.69)}),
}
"""Results of Tables 1 (after 32 evaluations) and 3 (after 16 evaluations, penalty of 500)."""

EIGHT = "Runs: see the column; the paper: 8" + GIVEN


def _trained(size: str, title: str, scaled: str = EIGHT, paper: str = "", **points: Any) -> Group:
    needs = partial(vae.check, size)
    return Group(size, title, (f"vae-{size}",), (*OURS, *RULED), scaled, paper, needs=needs, **points)


VAE_EXPERIMENT = Experiment(
    name="paper-vae",
    title="Variational autoencoder, Section 4 (b) (Fig. 2, Tables 1, 3 and 4)",
    suite=VAE,
    at=(16, 32),
    unit="nats",
    evaluations=vae.hours,
    machines=vae.machines,
    seeds={"smoke": (0,), "quick": (0,), "full": range(8)},
    groups=(
        _trained(
            "small",
            "VAE on MNIST, 1,000 images",
            "Training: 1,000 images, 6 epochs in batches of 16, 100 test images; the paper: 60,000, 32 epochs, batches of "
            "128, 10,000 test images. " + EIGHT + ". Most losses are above 125, where that penalty rewards what is illegal",
            PAPER_VAE,
            points=POINTS,
        ),
        Group(
            "proxy",
            "Conventions on the VAE's space, with an analytic loss",
            ("vae-proxy",),
            (*OURS, *RULED),
            "No training: an analytic function of the 28 hyperparameters, made for the peers benchmark, between 85 and some "
            "200 nats. It shows what the conventions do at little cost. Runs: see the column; the paper: 8" + GIVEN,
        ),
        _trained(
            "laptop",
            "VAE on MNIST, preset laptop",
            "Training: {train_size} images, {epochs} epochs in batches of {batch}, at most {seconds:g} seconds of one core, "
            "{test_size} test images; the paper: 60,000, "
            "32 epochs, batches of 128, 10,000 test images. Runs: see the column; the paper: 8".format(**vars(PRESETS["laptop"]))
            + GIVEN,
            points=POINTS,
        ),
        _trained(
            "paper",
            "VAE on FashionMNIST, preset paper",
            paper="Paper, Fig. 2 right (curves only): MiVaBO is below SMAC, TPE, GPyOpt and random search throughout.",
        ),
        _trained("paper-mnist", "VAE on MNIST, preset paper", points=POINTS),
    ),
)

EXPERIMENTS = {e.name: e for e in (SYNTHETIC_EXPERIMENT, XGBOOST_EXPERIMENT, VAE_EXPERIMENT)}
