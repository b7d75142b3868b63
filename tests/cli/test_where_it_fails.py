"""`mipcash show` says where a space fails, and the rules that its failures teach."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.report.failures import failing
from mipcash.space.compiled import declaration_of
from mipcash.study.cuts.columns import columns_of


def space() -> mc.Space:
    made = mc.Space("fails")
    made.module("how", {"plain": {}, "tuned": {"rate": mc.Real(1e-3, 1.0, log=True)}})
    made.categorical("kind", ["a", "b", "c"])
    made.real("x", 0.0, 1.0)
    return made


def objective(config: dict[str, Any]) -> float:
    if config["how"] == "tuned" and config["x"] > 0.5:
        raise MemoryError
    if config["kind"] == "c":
        return float("nan")
    return float(config["x"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.db"
    mc.minimize(objective, space(), 110, optimizer="random", seed=3, storage=path, progress=False)
    return path


@pytest.fixture
def journal(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(run, tmp_path / "run.db"))


def shown(path: Path) -> str:
    done = CliRunner().invoke(app, ["show", str(path), "--top", "1"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_show_groups_failures_by_kind_with_the_settings_that_go_with_them(journal: Path) -> None:
    text = shown(journal)
    with mc.Study(space(), "random", storage=journal, seed=3) as study:
        out_of_memory, nan = failing(columns_of(declaration_of(study.space)), study.trials)
        assert {out_of_memory.name, nan.name} == {"out of memory", "nan"}
        if nan.name != "nan":
            out_of_memory, nan = nan, out_of_memory
        trials = study.trials
        rules = study.proposed_rules()
    share = nan.settings[0]
    under = [t for t in trials if t.config["kind"] == "c"]
    failed = sum(t.failed and "nan" in t.message for t in under)
    assert share.setting == "kind = 'c'"
    assert (share.under, share.evaluations) == (failed, len(under))
    assert (share.elsewhere, share.others) == (0, 110 - len(under))
    assert {s.setting.split()[0].split(".")[0] for s in out_of_memory.settings} == {"how", "x"}
    for part in ("out of memory", "where it fails", str(share), "2 proposed rules"):
        assert part in text
    assert {r.what for r in rules} == {"kind = 'c'", next(r.what for r in rules if r.what.startswith("how"))}
    for rule in rules:
        assert rule.accepting in text


def test_show_tells_of_accepted_rules_and_proposes_them_no_more(journal: Path) -> None:
    made = space()
    with mc.Study(made, "random", storage=journal, seed=3) as study:
        names = [made.accept(rule).name for rule in study.proposed_rules()]
        study.tell(study.ask(), 1.0)
    text = shown(journal)
    for name in names:
        assert f"accepted rule {name!r}" in text


def test_show_says_nothing_of_failures_where_nothing_failed(tmp_path: Path) -> None:
    mc.minimize(lambda c: c["x"], space(), 4, optimizer="random", storage=tmp_path / "run.db", progress=False)
    text = shown(tmp_path / "run.db")
    assert "failures" not in text
    assert "proposed" not in text


def test_what_is_shown_can_be_added_to_a_model_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        "import mipcash as mc",
        "space = mc.Space('m')",
        "space.categorical('kind', ['a', 'b', 'c'])",
        "space.real('x', 0.0, 1.0)",
        "def objective(config):",
        "    if config['kind'] == 'b' and config['x'] > 0.3: raise mc.Failed('no')",
        "    return config['x']",
    ]
    Path("m.py").write_text("\n".join(lines))
    run = ["--optimizer", "random", "--budget", "70", "--storage", "run.db", "-q"]
    assert CliRunner().invoke(app, ["run", "m.py", *run]).exit_code == 0
    (line,) = [l.strip() for l in shown(Path("run.db")).splitlines() if l.strip().startswith("space.accept")]
    Path("m.py").write_text("\n".join([*lines, line]))
    done = CliRunner().invoke(app, ["resume", "run.db", "--budget", "90", "--model", "m.py", "-q"])
    assert done.exit_code == 0, done.output
    text = shown(Path("run.db"))
    assert "accepted rule" in text
    assert "90 trials" in CliRunner().invoke(app, ["show", "run.db"]).stdout
