"""Statistics in the tables of the benchmarks, computed for histories with known values."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import ablation, admm_real
from benchmarks.admm import benchmark as admm_benchmark
from benchmarks.admm import report as admm
from benchmarks.admmbo import report as admmbo
from benchmarks.admmbo import runner as admmbo_runner
from benchmarks.admmbo.problems import PROBLEMS as ADMMBO
from benchmarks.automl import record
from benchmarks.automl import report as automl
from benchmarks.automl.record import Answer, Run
from benchmarks.automl.statistics import compared, signed_ranks
from benchmarks.cmes.benchmark import ranks
from benchmarks.cmes.runs import Run as CMESRun
from benchmarks.limits import report as limits
from benchmarks.limits.suite import problems as limited
from benchmarks.paper import report as paper
from benchmarks.paper.experiment import Experiment, Group, rows, runs_of, summary
from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.peers import history, report
from benchmarks.peers.convention import PATIENCE
from benchmarks.peers.figures import draw
from benchmarks.peers.history import History
from benchmarks.peers.suite import Suite
from tests.benchmarking.peers.test_methods import EVEN

CPU = (None, 1.0, 2.0, 3.0)


def made(method: str, problem: str, seed: int, losses: list[float | None], rule: str = "", **more: Any) -> History:
    flags = tuple(v is not None for v in losses)
    values = {"legal": flags, "cpu": (0.5,) * len(losses), "stamp": {"revision": 1}, **more}
    return History(method, problem, seed, rule, tuple(losses), values["legal"], tuple(values["cpu"]), values["stamp"])


# -- peers ------------------------------------------------------------------------------------------------------------


def test_ranks_and_comparisons_of_peers(tmp_path: Path) -> None:
    """Check runs in which ours wins on ising-rules, ties with random on labs, and needs two evaluations of four."""
    for seed in (0, 1):
        for h in (
            made("mivabo", "ising-rules", seed, [9.0, 6.0, 6.0, 6.0]),
            made("random", "ising-rules", seed, [10.0, 9.0, 8.0, 8.0]),
            made("optuna-tpe", "ising-rules", seed, [10.0, None, 7.0, 7.0], "penalty"),
            made("optuna-tpe", "ising-rules", seed, [10.0, 9.0, 5.5, 5.5], "repair"),
            made("mivabo", "labs", seed, [-2.0, -3.0, -4.0, -4.0]),
            made("random", "labs", seed, [-1.0, -4.0, -4.0, -4.0]),
            made("optuna-tpe", "labs", seed, [-1.0, -2.0, -2.0, -2.0]),
        ):
            history.append(h, tmp_path)
    history.append(made("mivabo", "labs", 2, [-1.0] * 4), tmp_path)  # a seed that the other methods lack
    found = report.collect(["mivabo", "random", "optuna-tpe"], budget=4, read=history.reader(tmp_path))
    summary = report.summarise(found, "mivabo", 4)
    tables = {(t["convention"], t["group"]): t for t in summary["tables"]}
    everything = tables["penalty", "all"]
    assert (everything["pairs"], everything["problems"]) == (4, 2)
    assert {r["method"]: r["rank"] for r in everything["rows"]} == {"mivabo": 1.25, "random": 2.25, "optuna-tpe": 2.5}
    rules = {r["method"]: r for r in tables["penalty", "rules"]["rows"]}
    assert rules["optuna-tpe"]["illegal"] == 1
    assert rules["random"].items() >= {"wins": 2, "losses": 0, "ties": 0, "match": 2, "regret": 1.0}.items()
    assert rules["random"]["p"] == pytest.approx(0.5)
    optimum = 5.15160864931033
    assert rules["mivabo"]["regret"] == pytest.approx((6 - optimum) / (8 - optimum))
    repaired = {r["method"]: r for r in tables["repair", "rules"]["rows"]}
    assert (repaired["optuna-tpe"]["rank"], repaired["optuna-tpe"]["match"]) == (1.0, math.inf)
    free = {r["method"]: r for r in tables["repair", "free"]["rows"]}
    assert free["mivabo"]["rank"] == free["random"]["rank"] == 1.5
    assert free["random"]["ties"] == 2
    text = report.markdown(summary)
    assert "| optuna-tpe | 1.00 ± 0.00 |" in text
    assert "> 4" in text
    paths = draw(found, tmp_path / "figures", 4)
    assert [p.stat().st_size > 1000 for p in paths] == [True] * 2


# -- limits -----------------------------------------------------------------------------------------------------------


def test_the_table_of_constrained_runs(tmp_path: Path) -> None:
    problem = limited()["admmbo-17"]
    for name, regrets, seed, legal in (
        ("hybrid", [None, 0.5, 0.0, 0.2], 0, "1111"),
        ("optuna-tpe-constrained", [None, None, None, 0.1], 0, "1101"),
        ("random", [None, None, None, None], 0, "1111"),
        ("optuna-tpe-constrained", [0.3, 0.3, 0.3, 0.3], 1, "1111"),
    ):
        losses = [None if r is None else problem.optimum + r * (problem.reference - problem.optimum) for r in regrets]
        rule, flags = "" if name in ("hybrid", "random") else "repair", tuple(f == "1" for f in legal)
        history.append(made(name, "admmbo-17", seed, losses, rule, legal=flags, cpu=CPU, stamp={}), tmp_path)
    methods = ["hybrid", "optuna-tpe-constrained", "random"]
    found = limits.table("t", methods, "hybrid", budget=4, read=history.reader(tmp_path))
    assert (found["pairs"], found["seeds"], found["problems"]) == (
        1,
        [0],
        ["admmbo-17"],
    )  # no pair with a missing method
    ours, tpe, random = found["rows"]
    assert [r["rank"] for r in found["rows"]] == [1, 2, 3]
    assert [r["median"] for r in found["rows"]] == [pytest.approx(0, abs=1e-6), pytest.approx(0.1), limits.CAP]
    assert [r["first"] for r in found["rows"]] == [2, 4, 5]
    assert (ours["never"], random["never"]) == (0, 1)
    assert (ours["violating"], tpe["violating"]) == (0.25, 0.75)
    assert (tpe["illegal"], tpe["cpu"], tpe["wins"]) == (1, 2.0, [1, 0, 0])
    assert tpe["difference"][0] == pytest.approx(-5, abs=1e-3)
    text = limits.markdown(found)
    assert "| optuna-tpe-constrained | 2.00" in text
    assert "1 / 0 / 0" in text


# -- ADMM -------------------------------------------------------------------------------------------------------------

SLOW = made("slow", "artificial-0", 0, [4.0, 3.0, 2.0, 2.0], cpu=(None, 1.0, 1.0, 1.0))
FAST = made("fast", "artificial-0", 0, [4.0, 2.0, 1.0, 1.0, 0.5], cpu=(None, 0.1, 0.1, 0.1, 0.1))


def test_tracks_by_evaluations_and_seconds() -> None:
    track = admm.Track.of(SLOW)
    assert [track.after(t) for t in (1, 3)] == [4.0, 2.0]
    assert math.isnan(track.after(5))
    assert track.reaches(3.0) == (2, 1.0)
    assert track.reaches(1.0) == (math.inf, math.inf)
    assert [track.within(s) for s in (0.0, 1.5, 2.5)] == [4.0, 3.0, 2.0]
    assert math.isnan(track.within(9.0))  # the run had ended by then
    for name, cpu in (("random", [0.0, 0.5, 1.0]), ("other", [0.0, 1.0, 1.0])):  # equal shares of a joint draw
        drawn = made(name, "artificial-0", 0, [4.0, 3.0, 2.0], cpu=(None, 1.0, 0.0))
        assert admm.Track.of(drawn).cpu.tolist() == cpu


def test_pairs_speedups_and_tables_of_admm(tmp_path: Path) -> None:
    runs = {"slow": {"artificial-0": SLOW}, "fast": {"artificial-0": FAST}, "short": {"artificial-1": FAST}}
    (pair,) = admm.pairs(runs, "slow", 4)
    assert (pair["method"], pair["wins"], pair["losses"]) == ("fast", 1, 0)
    assert pair["ratio"] == pytest.approx(0.5, rel=1e-2)
    (row,) = admm.speedups(runs, "slow", 4)
    assert [row[k] for k in ("evaluations", "cpu", "lower")] == pytest.approx([3 / 2, 2.0 / 0.1, 0.5])
    assert row["lower_at_equal_cpu"] == pytest.approx(0.75)  # the run had continued to 0.5 by then
    (back,) = admm.speedups(runs, "fast", 5)
    assert (back["reached"], back["evaluations"], back["lower"]) == (0, 0.0, None)
    for name, cpu in (("jopt", 0.03), ("admm", 0.02), ("skopt", 1.0), ("hybrid", 0.1)):
        for k in range(3):
            losses: list[float | None] = [(k + 1) * 5.0 / (t + 1) for t in range(100)]
            history.append(made(name, f"artificial-{k}", k, losses, cpu=[None] * 10 + [cpu] * 90), tmp_path)
    text = admm_benchmark.markdown(admm_benchmark.collected(tmp_path))
    assert "140 times" in text
    assert "| JOPT(BO), sound: `jopt` | 3 |" in text


def test_rows_of_admmbo() -> None:
    task, best = admmbo_runner.Task("17", "admmbo, apart", 0), ADMMBO["17"].best
    trio = [
        admmbo_runner.Run(task, [(6, best + 0.4), (40, best + 0.1)], 120, "residuals", (best + 0.2, True), 100, 2.0),
        admmbo_runner.Run(task, [(20, best + 0.3)], 300, "", (best - 0.1, False), 100, 4.0),
        admmbo_runner.Run(task, [], 200, "40 iterations", None, 100, 3.0),
    ]
    found = admmbo.row(trio)
    assert found["feasible"] == {"6": 1 / 3, "15": 1 / 3, "30": 2 / 3, "50": 2 / 3}
    assert found["all_feasible"] is None
    assert [found["regret"][after] for after in ("30", "50")] == pytest.approx([0.4, 0.3])
    assert (found["converged"], found["stopped"]) == (1 / 3, 2 / 3)
    assert (found["spent"], found["most_spent"], found["budget"], found["answers_kept"]) == (200, 300, 300, 0.5)
    assert found["cpu"] == pytest.approx(0.03)
    assert trio[0].at(5) == math.inf
    (found,) = admmbo.rows(trio[:2])
    assert (found["starts"], found["all_feasible"]) == (2, 20)
    assert admmbo_runner.Run.of_line(trio[0].as_line()) == trio[0]


# -- constrained entropy search ---------------------------------------------------------------------------------------


def test_runs_without_a_feasible_point_share_the_last_rank() -> None:
    """Check the paper's example: five of ten methods are feasible, so each of the other five has rank 8."""
    runs = [CMESRun(f"m{k}", "p", 0, [float(k)], [k < 5], 0.0) for k in range(10)]
    assert ranks(runs)[:, 0].tolist() == [1, 2, 3, 4, 5, 8, 8, 8, 8, 8]
    assert runs[7].best == [math.inf]


# -- pipelines --------------------------------------------------------------------------------------------------------

RUN = Run(
    "hybrid", "wine", 0, "bundled", {"best": Answer(0.2, 0.3, 0.25), "ensemble": Answer(0.1, 0.2)},
    (0.5, None, 0.2), 3, 10, {"search": 2.0, "asks": 0.5}, (1.0, 1.5, 2.0), stamp={"evaluations": 3},
)  # fmt: skip


def test_ranks_and_paired_differences() -> None:
    keys = [(s, k) for s in "abcdef" for k in range(3)]
    ours = {key: 0.1 for key in keys}
    worse = {key: 0.2 + 0.01 * k for k, key in enumerate(keys)}
    some = {key: 0.05 if key[0] == "a" else 0.9 for key in keys} | {("g", 0): 0.0}  # a run that the other methods lack
    found = {c["name"]: c for c in compared({"ours": ours, "equal": dict(ours), "worse": worse, "some": some}, "ours")}
    assert list(found) == ["ours", "equal", "worse", "some"]
    assert found["ours"]["rank"] == found["equal"]["rank"] == pytest.approx((1.5 * 15 + 2.5 * 3) / 18)
    assert found["worse"].items() >= {"better": 18, "worse": 0, "ties": 0}.items()
    assert found["some"].items() >= {"better": 15, "worse": 3}.items()
    assert found["equal"].items() >= {"ties": 18, "wilcoxon_runs": 1.0}.items()
    assert found["worse"]["wilcoxon_sets"] == pytest.approx(2 / 2**6)  # six sets, all differences of one sign
    assert (
        found["worse"]["wilcoxon_runs"] < found["worse"]["wilcoxon_sets"]
    )  # seeds of one set are not independent pairs
    assert found["worse"]["gain"] == pytest.approx(0.185)
    assert signed_ranks(np.zeros(5)) == 1.0


def test_counts_and_times_as_in_the_paper(tmp_path: Path) -> None:
    joint = replace(RUN, method="jopt", losses=(0.5, 0.4, 0.4, 0.2), clock=(1.0, 2.0, 4.0, 8.0), evaluations=4)
    split_up = replace(joint, method="admm", losses=(0.3, 0.2, 0.1, 0.1), clock=(0.5, 1.0, 2.0, 3.0))
    never = replace(joint, method="random", losses=(0.9, 0.9, 0.9, 0.3))
    for each in (joint, split_up, never, replace(joint, method="hybrid")):
        record.append(each, tmp_path)
    groups = ((("hybrid", "admm", "jopt", "random"), (RUN.data,)), (("admm", "jopt"), ()))
    results = json.loads(json.dumps(admm_real.collected(tmp_path, groups)))
    rows = {r["name"]: r["against"] for r in results["tables"][0]["rows"]}
    assert rows["admm"] == {
        "reached": 1.0,
        "evaluations": 2.0,
        "seconds": 8.0,
        "lower": 2.0,
        "lower_at_equal_seconds": 4.0,
    }
    assert rows["random"]["reached"] == rows["random"]["evaluations"] == 0.0
    assert rows["hybrid"]["evaluations"] == 1.0
    assert rows["jopt"] == {}
    assert not results["tables"][1]["pairs"]
    assert "| `admm` | 100% | 2 | 8 | 50.0% | 75.0% |" in admm_real.markdown(results)


def test_pipelines_are_compared_at_equal_evaluations_and_equal_seconds() -> None:
    losses, fresh = (0.5, 0.4, None) + (0.3,) * 36 + (0.1,), (0.5, 0.2, None) + (0.35,) * 36 + (0.6,)
    clock = tuple(float(k + 1) for k in range(40))
    ours = replace(
        RUN, losses=losses, fresh=fresh, clock=clock, stamp={"starts": 2}, answers={"ensemble 10": Answer(0.2, 0.1)}
    )
    slow = {f"best {n}": Answer(0.2, 0.4) for n in (10, 20, 40)}
    seconds = {"search": 12.0, "search 10": 3.0, "search 20": 6.0, "search 40": 12.0}
    runs = {
        "hybrid": {("wine", 0): ours, ("wine", 1): ours},
        "flaml": {("wine", 0): replace(RUN, method="flaml", losses=(), clock=(), answers=slow, seconds=seconds)},
    }
    found = json.loads(json.dumps(automl.tables(runs, "few rows")))
    values = {(t["title"], t["after"]): {r["name"]: r["loss"] for r in t["rows"]} for t in found}
    single, single_or_default = "Single pipelines, few rows", "A single pipeline and the best default, few rows"
    assert values[single, "10 evaluations"] == {"`hybrid`": 0.35, "FLAML": 0.4}
    assert values[single, "40 evaluations"] == {"`hybrid`": 0.6, "FLAML": 0.4}  # the luckiest on the folds
    assert values[single, "the CPU seconds of FLAML for 40 evaluations"] == {"`hybrid`": 0.35, "FLAML": 0.4}
    assert values[single_or_default, "40 evaluations"] == {"`hybrid`": 0.6, "best default": 0.2}
    after = {
        r["name"]: r for t in found if t["after"].startswith("the CPU") and "ensemble" in t["title"] for r in t["rows"]
    }
    assert (after["`hybrid`, ensemble"]["loss"], after["`hybrid`, ensemble"]["seconds"]) == (0.1, 10.0)
    assert (
        "| 10 evaluations | FLAML | 2.00 ± 0.00 | 0.4000 | 0.2000 | 3.0 | 1 | 0.0500 ± 0.0000 | 1 / 0 / 0 | 1 |"
        in "\n".join(automl.markdown(found))
    )


def test_p_values_are_corrected_by_holms_method() -> None:
    assert automl.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})


def test_ablation_ratios_favour_the_default_if_the_part_helps() -> None:
    values = (("default", 0, 0.0), ("no warp", 0, 0.1), ("default", 1, 0.2), ("no warp", 1, 0.0))
    rows = [
        {"family": "rules", "variant": variant, "seed": seed, "best": best, "first": 1.0, "cpu": 0.1}
        for variant, seed, best in values
    ]
    floor = ablation.FLOOR
    expected = [math.log((0.1 + floor) / floor), math.log(floor / (0.2 + floor))]
    assert ablation.ratios(rows, "no warp", "rules") == pytest.approx(expected)
    text = ablation.markdown({"evaluations": 1, "seeds": 2, "runs": rows})
    assert "| no warp | | 1 / 1" in text.replace("|  |", "| |")


# -- the experiments of Daxberger et al. ------------------------------------------------------------------------------

VAE = EXPERIMENTS["paper-vae"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write two runs of ours and of a peer, which violates rules twice in one run and never in the other."""
    of, made = dict(VAE.suite.problems()["vae-small"].stamp), tmp_path / "histories"
    for seed in (0, 1):
        ours = tuple(200.0 - k for k in range(32))
        gaps = (None, None) if seed else ()
        losses = (*gaps, *(210.0 + seed for _ in range(32)))
        for method, rule, values, cpu, stamp in (
            ("hybrid", "", ours, 0.2, {"mipcash": "0"}),
            ("smac", "penalty-500", losses, 0.1, {"smac": "1"}),
        ):
            flags = tuple(v is not None for v in values)
            history.append(
                History(method, "vae-small", seed, rule, values, flags, (cpu,) * len(flags), stamp | of), made
            )
    return made


def test_summary_of_the_histories(folder: Path, tmp_path: Path) -> None:
    (first, *_) = history.read("hybrid", "", folder)
    history.append(replace(first, seed=99, losses=(1.0,) * 32), folder)  # another seed
    results = summary(VAE, folder)
    assert (results["runs"], results["seeds"]) == (4, [0, 1])
    assert results["stamps"] == {"mipcash": ["0"], "smac": ["1"]}
    ours, smac = next(g for g in results["groups"] if g["name"] == "small")["rows"]
    assert (ours["method"], ours["mean"][15], ours["mean"][31]) == ("hybrid", 185.0, 169.0)
    assert smac["violations"] == [[1.0, pytest.approx(math.sqrt(2))]] * 2
    assert smac["ours"] == [2, 0, 2]
    text = paper.markdown(VAE, results, "figures")
    for part in (
        "| hybrid | none | 2 | 185.0 ± 0.0 | 169.0 ± 0.0 | 0.0 ± 0.0 | 0.0 ± 0.0 | 169.0 | - | 0.2 |",
        "| smac | penalty-500 | 2 | 210.5 ± 0.7 |",
        "| 2 / 0 (2) | 0.1 |",
        "Histories: mipcash 0; smac 1.",
        "MiVaBO 91.29 ± 0.69",
        "figures/paper-vae-small.svg",
    ):
        assert part in text
    assert "1,000 images" in text.split("| hybrid")[0]  # the table names reduced sizes
    (path,) = paper.draw(VAE, results, tmp_path / "figures")
    assert path.stat().st_size > 1000


def test_illegal_suggestions_and_short_runs_in_rows(tmp_path: Path) -> None:
    suite = Suite("made", lambda: {"even": EVEN}, tmp_path, 5, 2, conventions=("penalty-500", "ignore"))
    for rule, losses in (
        ("penalty-500", (5.0, 3.0, None, 0.0, None, 0.0, None, 0.0)),
        ("ignore", (5.0, 3.0, *(None,) * (5 * PATIENCE - 2))),
    ):
        flags = tuple(v is not None for v in losses)
        history.append(History("fake", "even", 0, rule, losses, flags, (0.1,) * len(losses), {}), tmp_path)
    group = Group("one", "One", ("even",), ("fake",))
    experiment = Experiment("made", "Made up", suite, (group,), (3, 5), "loss", {"smoke": (0,)})
    told, ignored = rows(experiment, runs_of(experiment, group, history.reader(tmp_path), 5), 5)
    assert (told.convention, told.runs, told.short, told.mean) == ("penalty-500", 1, 0, [5.0, 3.0, 0.0, 0.0, 0.0])
    assert told.counted is not None
    assert told.counted[2] == 3.0  # the first suggestion is illegal and counts
    assert [v[0] for v in told.violations] == [1, 3]
    assert (ignored.convention, ignored.short, ignored.mean[-1]) == ("ignore", 1, 3.0)
