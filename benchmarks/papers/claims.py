"""Claims of the five papers, and the effect of each run that bears on them. All runs are read from their records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import mean

import numpy as np

from benchmarks import admm_real, fair_pipelines
from benchmarks.admm import benchmark as artificial
from benchmarks.admm.report import Track, log_ratio, speedups_of
from benchmarks.admmbo import benchmark as admmbo
from benchmarks.admmbo import runner
from benchmarks.automl.data import OF_PAPER
from benchmarks.automl.record import runs as automl_runs
from benchmarks.cmes import benchmark as cmes
from benchmarks.cmes import runs as cmes_runs
from benchmarks.cmes.benchmark import BINARY, DRAWS, JOINT, REAL, SIGMA
from benchmarks.paper.experiment import completed
from benchmarks.paper.suites import SYNTHETIC, VAE, XGBOOST
from benchmarks.paper.synthetic import RANGES
from benchmarks.papers.effects import ALL, BETTER, DIFFERENCE, EQUAL, MEDIAN, SHARE, TIMES
from benchmarks.peers.history import History, read
from benchmarks.peers.suite import Suite

Values = Callable[[], list[float]]


OUTSIDE = "not in the papers"
"""Place of a comparison that puts a claim into context, and is none."""


@dataclass(frozen=True)
class Claim:
    """Claim of a paper.

    Attributes:
        paper: its key in docs/references.md.
        where: table or figure.
        text: what is claimed.
        told: the paper's figure; empty if it has none.
        values: effect of each of our runs; None: not run.
        kind, claimed: see :mod:`benchmarks.papers.effects`.
        figure: the paper's figure in the unit of ours; None if it has none.
        note: unit of our figure, or why it was not run.
        benchmark: name of the benchmark whose runs count.
    """

    paper: str
    where: str
    text: str
    told: str
    values: Values | None
    kind: str = DIFFERENCE
    claimed: str = BETTER
    figure: float | None = None
    note: str = ""
    benchmark: str = ""


# -- liu2020 and ram2020: the artificial objective -----------------------------------------------------------------------


@cache
def _artificial(method: str) -> dict[str, History]:
    runs = {h.problem: h for h in read(method, "", artificial.FOLDER)}
    return runs | {h.problem: h for h in read(method, "", artificial.FOLDER / artificial.LONG)}


def sooner(method: str, reference: str) -> list[float]:
    """Return by which factor a method reaches the reference's loss after SHORT evaluations in fewer CPU seconds."""
    return [v["cpu"] for v in speedups_of(_artificial(method), _artificial(reference), artificial.SHORT)]


def lower(method: str, reference: str) -> list[float]:
    """Return the ratio of the reference's loss after SHORT evaluations to the method's after as many CPU seconds."""
    each = speedups_of(_artificial(method), _artificial(reference), artificial.SHORT)
    return [1.0 / (1.0 - v["lower_at_equal_cpu"]) for v in each]


def ratio(worse: Sequence[str], better: str, evaluations: int = artificial.BUDGET) -> list[float]:
    """Return the ratio of the least loss of some methods to that of another after as many evaluations."""
    of = [_artificial(m) for m in (*worse, better)]
    shared = [p for p in of[-1] if all(p in runs for runs in of)]
    after = {p: [Track.of(runs[p]).after(evaluations) for runs in of] for p in shared}
    return [float(np.exp(log_ratio(min(losses[:-1]), losses[-1]))) for losses in after.values()]


# -- liu2020: real data ---------------------------------------------------------------------------------------------------


@cache
def _beside_joint(method: str) -> list[dict[str, float]]:
    found = automl_runs((admm_real.JOINT, method))
    joint, own = found.get(admm_real.JOINT, {}), found.get(method, {})
    keys = [k for k in own if k in joint and k[0] in OF_PAPER]
    return [admm_real.beside(joint[k], own[k]) for k in keys]


def real(method: str, what: str) -> Values:
    """Return a comparison with JOPT by :func:`benchmarks.admm_real.beside`, for each data set and seed."""
    return lambda: [pair[what] for pair in _beside_joint(method)]


# -- liu2020: pipelines --------------------------------------------------------------------------------------------------


@cache
def _constrained() -> Mapping[tuple[str, int], list[tuple[Sequence[float], Sequence[float]]]]:
    """Return for each data set and seed the feasible losses, told and filtered, at each pair of thresholds, of ``admm``."""
    runs = {r.key: r for r in fair_pipelines.read(fair_pipelines.RUNS) if r.optimizer == "admm"}
    found: dict[tuple[str, int], list[tuple[Sequence[float], Sequence[float]]]] = {}
    for run in runs.values():
        if run.limits:
            free = next((r for r in runs.values() if (r.data, r.seed, r.limits) == (run.data, run.seed, None)), None)
            if free is not None:
                found.setdefault((run.data, run.seed), []).append((run.feasible(run.limits), free.feasible(run.limits)))
    return found


def share_gained() -> list[float]:
    """Return the share of feasible pipelines, told minus filtered, a mean over thresholds for each data set and seed."""
    budget = fair_pipelines.BUDGET["full"]
    return [mean((len(told) - len(filtered)) / budget for told, filtered in of) for of in _constrained().values()]


def loss_gained() -> list[float]:
    """Return the ratio of the best feasible losses, filtered to told, where both have one: geometric mean over thresholds."""
    both = [[(min(a), min(b)) for a, b in of if a and b] for of in _constrained().values()]
    return [float(np.exp(mean(np.log(b / a) for a, b in of))) for of in both if of]


# -- perrone2019 ---------------------------------------------------------------------------------------------------------


@cache
def _tuned() -> dict[tuple[str, str, int], cmes_runs.Run]:
    return {r.key: r for r in cmes_runs.read(cmes.RUNS)}


def rank_gained(table: str, worse: str, better: str) -> list[float]:
    """Return the differences of the average rank within the methods of a table, for each problem and seed."""
    names = cmes.TABLES[table]
    cells = sorted({key[1:] for key in _tuned()})
    whole = [[_tuned()[n, *cell] for n in names] for cell in cells if all((n, *cell) in _tuned() for n in names)]
    ranks = [cmes.ranks(runs).mean(axis=1) for runs in whole]
    return [float(r[names.index(worse)] - r[names.index(better)]) for r in ranks]


def more_violations(method: str, other: str) -> list[float]:
    """Return the difference of the shares of infeasible evaluations for each problem and seed."""
    cells = [key[1:] for key in _tuned() if key[0] == method and (other, *key[1:]) in _tuned()]
    return [mean(_tuned()[other, *c].kept) - mean(_tuned()[method, *c].kept) for c in cells]


# -- ariafar2019 ---------------------------------------------------------------------------------------------------------


@cache
def _split() -> list[runner.Run]:
    return runner.read(admmbo.RUNS)


def _starts(problem: str, method: str = runner.APART, **settings: float) -> list[runner.Run]:
    return [r for r in _split() if (r.task.problem, r.task.method, r.task.settings) == (problem, method, settings)]


def feasible_within(problem: str, evaluations: int) -> list[float]:
    """Return 1 for each start with a feasible configuration within some evaluations of single outputs."""
    return [float(r.feasible <= evaluations) for r in _starts(problem)]


def converged(settings: Iterable[dict[str, float]]) -> list[float]:
    """Return 1 for each start that ended by its residuals before the budget."""
    runs = [r for each in settings for r in _starts(admmbo.SENSITIVE, **each)]
    return [float("residuals" in r.stopped and r.spent < 300) for r in runs]


def near_optimum(problem: str, evaluations: int, regret: float) -> list[float]:
    """Return 1 for each start whose best feasible loss is within a regret of the optimum after some evaluations."""
    optimum = runner.PROBLEMS[problem].best
    return [float(r.at(evaluations) - optimum <= regret) for r in _starts(problem)]


def feasible_sooner(problem: str, other: str) -> list[float]:
    """Return the ratio of the evaluations until a feasible configuration, another method's to ADMMBO's, start by start."""
    own = {r.task.seed: r.feasible for r in _starts(problem)}
    return [r.feasible / own[r.task.seed] for r in _starts(problem, other) if r.task.seed in own]


# -- daxberger2019 -------------------------------------------------------------------------------------------------------


def _runs(suite: Suite, problems: Sequence[str], method: str, convention: str = "") -> dict[tuple[str, int], History]:
    def reading(name: str, told: str) -> list[History]:
        return read(name, told, suite.folder)

    return {h.key: h for h in completed(suite, problems, method, convention, reading, suite.budget)}


def error_gained(suite: Suite, problems: Sequence[str], rivals: Sequence[str], method: str, budget: int = 0) -> list[float]:
    """Return by how much the rival with the least mean loss is above a method, for each problem and seed they share.

    Args:
        rivals: names, with ``name@convention`` under a convention for illegal suggestions.
        budget: evaluations; 0: the suite's.
    """

    def ends(named: str) -> dict[tuple[str, int], float]:
        name, _, convention = named.partition("@")
        runs = _runs(suite, problems, name, convention)
        return {k: _value(k[0], min(h.solutions()[: budget or suite.budget])) for k, h in runs.items()}

    own, others = ends(method), [ends(r) for r in rivals]
    rival = min((r for r in others if r.keys() & own.keys()), key=lambda r: mean(r[k] for k in r.keys() & own.keys()))
    return [rival[k] - own[k] for k in sorted(rival.keys() & own.keys())]


def _value(problem: str, loss: float) -> float:
    if problem not in RANGES:
        return loss
    least, most = RANGES[problem]
    return (loss - least) / (most - least)


def without_violations(suite: Suite, problems: Sequence[str], method: str) -> list[float]:
    """Return 1 for each run without an illegal suggestion."""
    return [float(all(h.legal)) for h in _runs(suite, problems, method).values()]


def _drawn(name: str) -> tuple[str, ...]:
    return tuple(p for p in SYNTHETIC.problems() if p.startswith(name))


LIBRARIES = ("smac", "hyperopt", "joint-gp", "random")
PENALISED = ("smac@penalty-50", "hyperopt@penalty-50", "joint-gp", "random")
BANDIT_LONG, SPLIT, SLOW, SOUND = artificial.BANDIT, artificial.BO, artificial.SLOW, artificial.SOUND
RHO = [{"rho": rho, "penalty": 20.0} for rho in admmbo.RHOS]
LARGE_M = [{"penalty": m} for m in admmbo.PENALTIES if m >= 0.1]
SMALL_M = [{"penalty": m} for m in admmbo.PENALTIES if m < 0.1]

ARTIFICIAL = "admm-artificial"
LIU_MADE = partial(Claim, "liu2020", benchmark=ARTIFICIAL)
LIU = partial(Claim, "liu2020")
LIU_REAL = partial(Claim, "liu2020", benchmark="admm-real")
LIU_FAIR = partial(Claim, "liu2020", benchmark="fair-pipelines")
PERRONE_CMES = partial(Claim, "perrone2019", benchmark="cmes")
PERRONE = partial(Claim, "perrone2019")
ARIAFAR = partial(Claim, "ariafar2019")
ARIAFAR_ADMMBO = partial(Claim, "ariafar2019", benchmark="admmbo")
DAXBERGER_SYNTHETIC = partial(Claim, "daxberger2019", benchmark="paper-synthetic")
DAXBERGER_XGBOOST = partial(Claim, "daxberger2019", benchmark="paper-xgboost")
DAXBERGER_VAE = partial(Claim, "daxberger2019", benchmark="paper-vae")
DAXBERGER = partial(Claim, "daxberger2019")
CLAIMS: tuple[Claim, ...] = (
    LIU_MADE("Table A4; ram2020, Fig. 1c", "Artificial objective: AdADMM(BO,Ba) reaches JOPT(BO)'s final loss sooner",
        "108; 140 times", lambda: sooner(BANDIT_LONG, SLOW), MEDIAN, figure=108.0,
        note="times, CPU s of the methods, against scikit-optimize after 50 evaluations"),
    LIU_MADE("Table A5; ram2020, Fig. 1b", "The same: AdADMM(BO,BO)", "39; 120 times", lambda: sooner(SPLIT, SLOW), MEDIAN,
        figure=39.0, note="times, as above"),
    LIU_MADE(OUTSIDE, "The same: random search", "", lambda: sooner("random", SLOW), MEDIAN,
        note="times, as above: its proposals cost nothing"),
    LIU_MADE("Table A4; ram2020, Fig. 1c", "The same: AdADMM(BO,Ba) ends lower", "31 %; 29 %: 1.45; 1.41 times",
        lambda: lower(BANDIT_LONG, SLOW), TIMES, figure=1.45, note="ratio of losses after as many CPU s"),
    LIU_MADE("Table A5; ram2020, Fig. 1b", "The same: AdADMM(BO,BO) ends lower", "27 %; 17 %: 1.37; 1.20 times",
        lambda: lower(SPLIT, SLOW), TIMES, figure=1.37, note="as above"),
    LIU_MADE(OUTSIDE, "AdADMM(BO,Ba) ends lower than joint BO at equal evaluations", "", lambda: ratio([SOUND], BANDIT_LONG), TIMES,
        note="ratio of losses to `jopt` after 100 evaluations"),
    LIU_MADE("Fig. 4, A8; ram2020, Fig. 1a", "Growing precision is as good as the best fixed one", "curves",
        lambda: ratio(["admm:growth=0", "admm:growth=0,first=16"], BANDIT_LONG), TIMES, EQUAL,
        note="ratio of losses after 100 evaluations, I = 4 or 16 to I = 4 + 2 t"),
    LIU_MADE("Fig. A6; ram2020, Fig. 3", "rho hardly matters", "curves", lambda: ratio(["admm:rho=0.1"], "admm:rho=10.0"), TIMES,
        EQUAL, note="ratio of losses, rho = 0.1 to 10"),
    LIU_MADE("Fig. A6", "f-hat hardly matters", "0.5 to 0.9", lambda: ratio(["admm:f_hat=0.7,rho=1.0"], "admm:rho=1.0"), TIMES,
        EQUAL, note="ratio of losses, f-hat = 0.7 to rewards by rank"),
    LIU_MADE("Fig. A1", "theta-min: BO is better than random search", "curves",
        lambda: ratio(["admm:theta_min=random"], BANDIT_LONG), TIMES, note="ratio of losses after 100 evaluations"),
    LIU("Fig. A1", "theta-min: a trust region (RBFOpt) is of use too", "curves", None, note="no such sub-solver here"),
    LIU_MADE("Fig. A3", "z-min: the bandit is better than random search at first (on 2 of 5 sets; worse on 1)", "curves",
        lambda: ratio(["admm:z_min=random"], BANDIT_LONG), TIMES, note="ratio of losses after 100 evaluations"),
    LIU_REAL("Table A4", "Real data: AdADMM(BO,Ba) reaches JOPT(BO)'s final loss sooner", "median 18 times",
        real(admm_real.PENALTY, "seconds"), MEDIAN, figure=18.0,
        note="times, CPU s with evaluations, until JOPT's loss after 40 evaluations"),
    LIU_REAL("Table A4", "The same: AdADMM(BO,Ba) ends lower", "median 2.5 %: 1.03 times",
        real(admm_real.PENALTY, "lower_at_equal_seconds"), TIMES, figure=1.03, note="ratio of losses after as many CPU s"),
    LIU_REAL("Table A5", "The same: AdADMM(BO,BO) reaches JOPT(BO)'s final loss sooner", "median 5 times",
        real(admm_real.SPLIT_BY_BO, "seconds"), MEDIAN, figure=5.0, note="times, as above"),
    LIU_REAL("Table A5", "The same: AdADMM(BO,BO) ends lower", "median 5 %: 1.05 times",
        real(admm_real.SPLIT_BY_BO, "lower_at_equal_seconds"), TIMES, figure=1.05, note="ratio of losses, as above"),
    LIU_REAL(OUTSIDE, "The same: random search", "", real("random", "lower_at_equal_seconds"), TIMES,
        note="ratio of JOPT's loss to it, as above"),
    LIU_FAIR("Fig. 3; ram2020, Fig. 2",
        "ADMM that is told latency and fairness finds more feasible pipelines than it does by filtering", "curves", share_gained,
        note="difference of shares"),
    LIU_FAIR("Fig. 2; ram2020, Fig. 2", "and better ones", "curves", loss_gained, TIMES,
        note="ratio of best feasible losses; as above"),
    PERRONE_CMES("Table 2", "Binary feedback: cMES ranks before cEI", "3.08; 3.43", lambda: rank_gained(BINARY, "cEI", "cMES"),
        figure=0.35, note="difference of ranks"),
    PERRONE_CMES("Table 2", "The same: AP ranks before cEI", "3.38; 3.43", lambda: rank_gained(BINARY, "cEI", "AP"), figure=0.05,
        note="difference of ranks"),
    PERRONE_CMES("Table 2", "The same: cMES is worse with the loss of infeasible evaluations", "3.63; 3.08",
        lambda: rank_gained(BINARY, "cMES observe", "cMES"), figure=0.55, note="difference of ranks"),
    PERRONE_CMES("Table 2", "The same: cMES has more infeasible evaluations than cEI", "47 %; 33 %",
        lambda: more_violations("cMES", "cEI"), figure=0.137, note="difference of shares"),
    PERRONE_CMES("Table 3", "Real-valued feedback: cMES ranks before cEI", "2.68; 3.00",
        lambda: rank_gained(REAL, "cEI real", "cMES real"), figure=0.32, note="difference of ranks"),
    PERRONE("Table 3", "The same: cMES ranks before PESC", "2.68; 3.09", None, note="PESC is not implemented"),
    PERRONE_CMES("Table 4", "Joint draws of the minimum are better than marginal ones", "5.77; 6.10",
        lambda: rank_gained(JOINT, "cMES, marginal", "cMES"), figure=0.33, note="difference of ranks"),
    PERRONE_CMES("Table 5", "Ten draws are better than two", "5.48; 5.59", lambda: rank_gained(DRAWS, "cMES, 2 draws", "cMES"),
        figure=0.11, note="difference of ranks"),
    PERRONE_CMES("Table 5", "p = 0.9 is better than p = 0.5", "5.09; 5.48", lambda: rank_gained(SIGMA, "cMES", "cMES, p = 0.9"),
        figure=0.39, note="difference of ranks"),
    PERRONE("Table 6", "Numbers of draws with the loss of infeasible evaluations", "5.70; 5.20", None,
        note="no such method here"),
    ARIAFAR("Fig. 3", "(17): a feasible point in every run after 15 evaluations", "100 of 100", lambda: feasible_within("17", 15),
        SHARE, ALL, 1.0, "share of starts", "admmbo"),
    ARIAFAR("Fig. 1", "(16): near the optimum in every run after 100 evaluations", "100 of 100",
        lambda: near_optimum("16", 100, 0.01), SHARE, ALL, 1.0, "share of starts with a regret of at most 0.01", "admmbo"),
    ARIAFAR_ADMMBO("Fig. 1", "(16): ADMMBO is the first to have a feasible point", "curves",
        lambda: feasible_sooner("16", runner.HYBRID), TIMES,
        note="ratio of evaluations of single outputs until then, log-EIC (`hybrid`) to ADMMBO"),
    ARIAFAR("Fig. 5", "(18): a feasible point in every run after 25 evaluations", "100 of 100", lambda: feasible_within("18", 25),
        SHARE, ALL, 1.0, "share of starts", "admmbo"),
    ARIAFAR("Fig. 7", "(17): converged before 300 evaluations, whatever rho", "all", lambda: converged(RHO), SHARE, ALL, 1.0,
        "share of starts, rho = 0.0001 to 2", "admmbo"),
    ARIAFAR("Fig. 8", "(17): the same, whatever M >= 0.1", "all", lambda: converged(LARGE_M), SHARE, ALL, 1.0,
        "share of starts, M = 0.1 to 1000", "admmbo"),
    ARIAFAR("Fig. 8", "(17): the same, M = 0.001, 0.01", "all", lambda: converged(SMALL_M), SHARE, ALL, 1.0, "share of starts",
        "admmbo"),
    ARIAFAR("Fig. 6", "A fast network: ADMMBO ends before PESC", "5 starts", None,
        note="40 minutes a start on a GPU, and PESC is not implemented"),
    DAXBERGER_SYNTHETIC("Fig. 4 left", "A.1, Gaussian weights: MiVaBO is first of SMAC, TPE, GPyOpt and random search", "curves",
        lambda: error_gained(SYNTHETIC, _drawn("a1-gaussian"), LIBRARIES, "mivabo"),
        note="difference of normalised errors to the best rival after 50 evaluations"),
    DAXBERGER_SYNTHETIC("Fig. 4 right", "A.1, sparse weights: MiVaBO is first of the same", "curves",
        lambda: error_gained(SYNTHETIC, _drawn("a1-laplace"), LIBRARIES, "mivabo"), note="as above"),
    DAXBERGER_SYNTHETIC("Fig. 4 right", "The same: a sparse prior is better than a Gaussian one", "curves",
        lambda: error_gained(SYNTHETIC, _drawn("a1-laplace"), ["mivabo"], "mivabo:prior=laplace"), note="as above"),
    DAXBERGER_SYNTHETIC("Fig. 5", "A.2, at most two of eight bits: MiVaBO is first of the same", "curves",
        lambda: error_gained(SYNTHETIC, _drawn("a2-cardinality"), PENALISED, "mivabo"), note="as above"),
    DAXBERGER_XGBOOST("Fig. 1 left", "XGBoost on monks: MiVaBO is first of the same", "curves",
        lambda: error_gained(XGBOOST, ["monks-table"], LIBRARIES, "mivabo"),
        note="difference of held-out errors to the best rival after 50 evaluations"),
    DAXBERGER_VAE("Fig. 2; Table 1", "VAE: MiVaBO is below random search after 32 evaluations", "91.3; 102.0 nats",
        lambda: error_gained(VAE, ["vae-laptop", "vae-small"], ["random"], "mivabo"), figure=10.75,
        note="difference in nats, 1,000 and 1,200 images instead of 60,000"),
    DAXBERGER("Table 4", "VAE: no suggestion of MiVaBO violates a rule", "0; others 36 to 71 a run",
        lambda: without_violations(VAE, ["vae-laptop", "vae-small", "vae-proxy"], "mivabo"), SHARE, ALL, 1.0, "share of runs",
        "paper-vae"),
    DAXBERGER("Fig. 2 right", "FashionMNIST, 60,000 images", "curves", None, note="days without a GPU; `vae-paper` runs it"),
)  # fmt: skip
