"""Smoke runs, and the page made from a tiny folder of results."""

from __future__ import annotations

import json
import math
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import records
from benchmarks.__main__ import main
from benchmarks.paper import benchmark, report, synthetic
from benchmarks.paper.__main__ import main as paper_main
from benchmarks.paper.experiment import Experiment, summary
from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.paper.remembered import Remembered
from benchmarks.peers import history
from benchmarks.peers.history import History
from benchmarks.peers.method import MissingPackageError
from benchmarks.peers.runner import complete
from benchmarks.registry import benchmarks
from mipcash.errors import ModelError

VAE = EXPERIMENTS["paper-vae"]


def fill(folder: Path) -> None:
    """Two runs of ours and of a peer that breaks rules twice in one of them and never in the other."""
    of = dict(VAE.suite.problems()["vae-small"].stamp)
    for seed in (0, 1):
        ours = tuple(200.0 - k for k in range(32))
        history.append(
            History("hybrid", "vae-small", seed, "", ours, (True,) * 32, (0.2,) * 32, {"mipcash": "0"} | of), folder
        )
        gaps = (None, None) if seed else ()
        losses = (*gaps, *(210.0 + seed for _ in range(32)))
        flags = tuple(v is not None for v in losses)
        spent = (0.1,) * len(losses)
        history.append(
            History("smac", "vae-small", seed, "penalty-500", losses, flags, spent, {"smac": "1"} | of), folder
        )


def test_what_the_histories_come_to(tmp_path: Path) -> None:
    fill(tmp_path)
    results = summary(VAE, tmp_path)
    assert (results["runs"], results["seeds"]) == (4, [0, 1])
    assert results["stamps"] == {"mipcash": ["0"], "smac": ["1"]}
    ours, smac = next(g for g in results["groups"] if g["name"] == "small")["rows"]
    assert (ours["method"], ours["mean"][15], ours["mean"][31]) == ("hybrid", 185.0, 169.0)
    assert smac["violations"] == [[1.0, pytest.approx(math.sqrt(2))]] * 2
    text = report.markdown(VAE, results, "figures")
    assert "| hybrid | none | 2 | 185.0 ± 0.0 | 169.0 ± 0.0 | 0.0 ± 0.0 | 0.0 ± 0.0 | 169.0 | - | 0.2 |" in text
    assert smac["ours"] == [2, 0, 2]
    assert "| 2 / 0 (2) | 0.1 |" in text
    assert "Histories: mipcash 0; smac 1." in text
    assert "| smac | penalty-500 | 2 | 210.5 ± 0.7 |" in text
    assert "1.0 ± 1.4" in text
    assert "1,000 images" in text.split("| hybrid")[0]  # what is scaled down stands in the table
    assert "MiVaBO 91.29 ± 0.69" in text
    assert "figures/paper-vae-small.svg" in text
    (path,) = report.draw(VAE, results, tmp_path / "figures")
    assert path.stat().st_size > 1000


def test_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "histories")
    results = summary(VAE, tmp_path / "histories") | {"cpu_hours": {"proposals": 1.5}}
    record = records.stamped("paper-vae", records.PART, 3.0, results)
    (tmp_path / "paper" / "figures").mkdir(parents=True)
    (tmp_path / "paper" / "paper-vae.json").write_text(json.dumps(record), encoding="utf-8")
    (tmp_path / "paper" / "other.json").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "paper" / "broken.json").write_text("{", encoding="utf-8")
    text = records.page(benchmarks(), tmp_path).read_text(encoding="utf-8")
    assert "## paper-vae" in text
    assert "1.50 proposals" in text
    assert "Part of `python -m benchmarks run paper-vae --size full`: 4 runs, seeds 0, 1" in text
    assert "| hybrid | none | 2 |" in text
    assert "](paper/figures/paper-vae-small.svg)" in text
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    assert main(["report"]) == 0
    assert "REPORT.md" in capsys.readouterr().out


def test_the_kept_page_is_of_the_kept_records(tmp_path: Path) -> None:
    """If this fails: `python -m benchmarks report`."""
    folder = tmp_path / "results"
    shutil.copytree(records.FOLDER, folder, ignore=shutil.ignore_patterns("*.gz", "paper-*.md", records.PAGE))
    text = records.page(benchmarks(), folder).read_text(encoding="utf-8")
    assert text == (records.FOLDER / records.PAGE).read_text(encoding="utf-8")


def test_smoke(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    assert main(["run", "paper-synthetic", "--size", "smoke", "--out", str(out)]) == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    results = record["results"]
    assert (results["failed"], results["runs"]) == (0, 4)
    assert record["versions"]["mipcash"]
    for group in results["groups"]:
        for row in group["rows"]:
            assert 0 <= row["mean"][-1] <= row["mean"][0] <= 1
    assert main(["run", "paper-vae", "--size", "smoke"]) == 0


def test_smoke_from_the_table(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    assert main(["run", "paper-xgboost", "--size", "smoke", "--out", str(out)]) == 0
    (monks, *_) = json.loads(out.read_text(encoding="utf-8"))["results"]["groups"]
    assert {r["method"] for r in monks["rows"]} == {"hybrid", "random"}


def test_normalised_errors_and_optima() -> None:
    experiment: Experiment = EXPERIMENTS["paper-synthetic"]
    for name, (least, most) in synthetic.RANGES.items():
        assert experiment.value(name, least) == 0
        assert experiment.value(name, most) == 1


def test_evaluations_are_remembered(tmp_path: Path) -> None:
    calls = []

    def objective(config: object) -> float:
        calls.append(config)
        return 7.5

    path = tmp_path / "evaluations.jsonl"
    assert Remembered(lambda: objective, path)({"a": 1, "b": 0.1}) == 7.5
    with path.open("a") as file:
        file.write('{"config": {"a"')  # a kill in the middle of a line
    again = Remembered(lambda: objective, path)
    assert again({"b": 0.1, "a": 1}) == 7.5
    assert len(calls) == 1
    assert again({"b": 0.2, "a": 1}) == 7.5
    assert len(again.records()) == len(calls) == 2
    Remembered(lambda: objective, path, {"epochs": 5})({"a": 1, "b": 0.1})  # other settings: trained again
    assert len(calls) == 3


def test_runs_of_other_seeds_are_not_reported(tmp_path: Path) -> None:
    fill(tmp_path)
    (first, *_) = history.read("hybrid", "", tmp_path)
    history.append(replace(first, seed=99, losses=(1.0,) * 32), tmp_path)
    results = summary(VAE, tmp_path)
    assert (results["runs"], results["seeds"]) == (4, [0, 1])


def test_methods_by_what_an_illegal_suggestion_is_told(tmp_path: Path) -> None:
    fill(tmp_path)
    assert "After 16 evaluations" not in report.markdown(VAE, summary(VAE, tmp_path)), "one convention makes no table"
    for run in history.read("smac", "penalty-500", tmp_path):
        losses = tuple(None if v is None else v - 5.0 for v in run.losses)
        history.append(replace(run, convention="penalty-125", losses=losses), tmp_path)
    text = report.markdown(VAE, summary(VAE, tmp_path))
    assert (
        "| method | penalty of 500 | penalty of 125 | violations, penalty of 500 | violations, penalty of 125 |" in text
    )
    assert "| hybrid, always legal | 185.0 ± 0.0 |  | 0.0 ± 0.0 |  |" in text
    assert "| smac | 210.5 ± 0.7 | 205.5 ± 0.7 | 1.0 ± 1.4 | 1.0 ± 1.4 |" in text


def test_the_numbers_of_the_paper_are_drawn_beside_ours(tmp_path: Path) -> None:
    fill(tmp_path)
    results = summary(VAE, tmp_path)
    (path,) = report.draw(VAE, results, tmp_path / "with")
    bare = replace(VAE, groups=tuple(replace(g, points={}) for g in VAE.groups))
    (plain,) = report.draw(bare, results, tmp_path / "without")
    assert path.stat().st_size > plain.stat().st_size + 2000
    names = {n for g in VAE.groups for n in g.points}
    assert names <= {m for g in VAE.groups for m in g.methods}


def test_the_command_line_names_what_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit):
        paper_main(["collect", "nothing"])
    assert "there is no experiment 'nothing'; there are paper-synthetic" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        paper_main(["final", "--size", "small", "--samples", "0"])
    assert "--samples and --epochs must be at least 1" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "xgboost", None)
    said: list[str] = []
    monkeypatch.setattr(benchmark, "make_method", lambda name: None)
    left = benchmark._feasible(EXPERIMENTS["paper-xgboost"], "full", said.append)
    assert [g.name for g, _ in left] == ["monks", "phoneme"], "looked up, not trained"
    assert "XGBoost on monks-problem-1, trained at every evaluation: left out" in said[-1]


def test_records_do_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said: list[str] = []
    experiment = EXPERIMENTS["paper-synthetic"]
    assert benchmark.write(experiment, tmp_path, said.append)["runs"] > 0
    assert (tmp_path / "paper-synthetic.md").read_text(encoding="utf-8").startswith("# Synthetic")
    assert "mipcash[plots]" in said[0]


def test_what_takes_days_has_to_be_named() -> None:
    assert not {"vae-paper", "vae-paper-mnist"} & {p.name for p in VAE.suite.chosen()}
    assert [p.name for p in VAE.suite.chosen(["vae-paper"])] == ["vae-paper"]


def test_every_line_of_a_figure_is_distinct() -> None:
    names = [*benchmark.EXPERIMENTS["paper-vae"].groups[0].methods, *(f"smac{k}" for k in range(8))]
    found = report.styles(names)
    assert len(set(found)) == len(names)


def test_what_cannot_run_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(name: str) -> None:
        if name == "smac":
            raise MissingPackageError("no smac")

    def no_images() -> None:
        raise ModelError("there are no images")

    said: list[str] = []
    without = replace(VAE, groups=tuple(replace(g, needs=lambda: None) for g in VAE.groups))
    monkeypatch.setattr(benchmark, "make_method", make)
    monkeypatch.setattr(benchmark, "_cuda", lambda: False)
    found = benchmark._feasible(without, "full", said.append)
    assert [g.name for g, _ in found] == ["small", "proxy", "laptop"]
    assert all("hybrid" in methods and "smac" not in methods for _, methods in found)
    assert sum("no smac" in text for text in said) == 3
    assert sum("no GPU" in text for text in said) == 2, "Fashion-MNIST and MNIST"
    assert [g.name for g, _ in benchmark._feasible(without, "quick", said.append)] == ["small", "proxy"]
    blind = replace(VAE, groups=tuple(replace(g, needs=no_images) for g in VAE.groups[:1]))
    assert benchmark._feasible(blind, "quick", said.append) == []
    assert said[-1] == "VAE on MNIST, 1,000 images: left out, there are no images"


def test_runs_of_another_problem_or_cut_short_do_not_count(tmp_path: Path) -> None:
    of = VAE.suite.problems()["vae-small"]
    stamp = dict(of.stamp)
    legal, half = (150.0,) * 32, (*(None,) * 16, *(150.0,) * 16)

    def run(losses: tuple[float | None, ...], changes: dict[str, object]) -> History:
        flags = tuple(v is not None for v in losses)
        return History("smac", "vae-small", 0, "penalty-500", losses, flags, (0.1,) * len(losses), stamp | changes)

    assert complete(run(legal, {}), 32, of)
    assert not complete(run(legal, {"epochs": 99}), 32, of)
    assert not complete(run(half, {}), 32, of), "illegal suggestions cost no evaluation"
    assert complete(run(half + legal, {}), 32, of)
