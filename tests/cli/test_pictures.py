"""``mipcash report``, ``mipcash dash`` and ``mipcash run --json``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from commands import mipcash, said, start

import mipcash as mc
from mipcash.cli import modelfile
from mipcash.cli.archive import open_archive

Write = Callable[..., Path]
NOISY = '''"""Prints where it can."""
import os, sys
import mipcash as mc
LIMITS = {"ms": 5.0}
space = mc.Space("noisy")
space.integer("n", 0, 9)
space.categorical("c", ["a", None])
def objective(config):
    print("printed")
    sys.stdout.write("written\\n")
    os.system("echo by another process")
    if config["n"] == 0:
        raise mc.Failed("none")
    return {"loss": 1.0 / config["n"], "ms": float(config["n"])}
'''


def test_a_report_reads_the_space_from_the_journal_and_runs_no_file(write: Write, tmp_path: Path) -> None:
    model = write()
    mipcash("run", "bowl.py", "--storage", "run.db", "-q", "--budget", "6")
    model.write_text(model.read_text() + "\nopen('ran', 'w').close()\n")
    whole = mipcash("report", "run.db")
    assert (whole.exit_code, whole.stdout, whole.stderr) == (0, "report: run.html\n", "")
    assert "Slices through" in Path("run.html").read_text()
    assert not Path("ran").exists()
    given = mipcash("report", "run.db", "-o", "whole.html", "--model", "bowl.py")
    assert (given.exit_code, given.stderr) == (0, "")
    assert Path("ran").exists()
    assert "Slices through" in Path("whole.html").read_text()


def test_a_report_of_a_space_on_a_pyomo_model_needs_the_file_that_declares_it(write: Write) -> None:
    declared = "import mipcash as mc\nimport pyomo.environ as pyo\nmodel = pyo.ConcreteModel('alone')\n"
    declared += "model.x = pyo.Var(bounds=(0.0, 1.0))\nspace = mc.Space.from_pyomo(model)\n"
    write(declared, "declared.py")
    space = modelfile.load_space("declared.py")
    mc.minimize(lambda c: c["x"], space, 5, optimizer="random", storage="own.db", progress=False)
    assert "give its file by --model FILE" in mipcash("report", "own.db").stderr
    assert "--model FILE" in Path("own.html").read_text()
    assert mipcash("report", "own.db", "--model", "declared.py").stderr == ""


def test_a_report_that_cannot_be_made_fails_with_one_line(write: Write) -> None:
    write()
    mipcash("run", "bowl.py", "--storage", "run.db", "-q")
    write("import mipcash as mc\nspace = mc.Space('bowl')\nspace.real('y', 0.0, 1.0)\n", "other.py")
    for arguments, message in (
        (["report", "none.db"], "none.db does not exist"),
        (["dash", "none.db"], "none.db does not exist"),
        (["report", "run.db", "-o", "run.db"], "its name must end in .html"),
        (["report", "run.db", "-o", "no/run.html"], "cannot be written"),
        (["report", "run.db", "--model", "other.py"], "was written for another space"),
        (["report", "run.db", "--model", "no.py"], "there is no model file"),
    ):
        assert message in said(2, *arguments)
    assert Path("run.db").read_bytes().startswith(b"SQLite")


def test_json_leaves_only_json_on_standard_output(write: Write) -> None:
    write(NOISY, "noisy.py")
    command = [sys.executable, "-m", "mipcash", "run", "noisy.py", "--budget", "8", "--optimizer", "random", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *trials, answer = [json.loads(line) for line in done.stdout.splitlines()]
    assert "by another process" in done.stderr
    assert "printed" in done.stderr
    assert [t["number"] for t in trials] == list(range(8))
    for t in trials:
        assert t["type"] == "trial"
        assert t["violations"] == ({"ms": t["config"]["n"] - 5} if t["config"]["n"] > 5 else {})
        assert t["status"] == ("failed" if t["config"]["n"] == 0 else "done")
        assert t["budget"] == 8
        assert t["seconds"]["suggestion"] >= 0.0
    assert trials[-1]["seconds_left"] == 0.0
    assert trials[3]["seconds_left"] > 0.0
    kept = [t for t in trials if t["status"] == "done" and not t["violations"]]
    best = min(kept, key=lambda t: t["loss"])
    assert (answer["type"], answer["best"]["config"], answer["stopped"]) == ("result", best["config"], "budget")
    assert trials[-1]["best"] == {"number": answer["best"]["number"], "loss": best["loss"]}
    assert (answer["evaluations"], answer["feasible"]) == (8, len(kept))
    again = mipcash("run", "noisy.py", "--budget", "8", "--optimizer", "random", "--json")
    assert [json.loads(line) for line in again.stdout.splitlines()] == [answer]
    resumed = mipcash("resume", "runs/noisy-seed0.db", "--model", "noisy.py", "--budget", "9", "--json")
    assert [json.loads(line)["type"] for line in resumed.stdout.splitlines()] == ["trial", "result"]
    odd = NOISY.replace("1.0 / config", "float('inf') * config").replace('float(config["n"])', "float('nan')")
    write(odd, "odd.py")
    lines = mipcash("run", "odd.py", "--budget", "3", "--optimizer", "random", "--json").stdout.splitlines()
    assert len(lines) == 4
    read = [json.loads(line, parse_constant=pytest.fail) for line in lines]  # JSON has neither NaN nor infinity
    assert read[-1]["best"] is None


def test_the_live_page_ends_with_ctrl_c(write: Write) -> None:
    write()
    mipcash("run", "bowl.py", "--storage", "run.db", "-q")
    with start("dash", "run.db", "--port", "0", "--model", "bowl.py") as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[0]
            with urlopen(address, timeout=90) as answer:
                assert "Slices through" in answer.read().decode()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=90)
        finally:
            process.kill()  # leaving the block would wait forever for a running server
    assert (process.returncode, err) == (0, "")
    assert out == "ended\n"


def test_runs_are_compared_in_a_table_and_on_one_picture(write: Write, pictures: None) -> None:
    write()
    for seed in ("0", "1"):
        mipcash("run", "bowl.py", "--storage", f"{seed}.db", "-q", "--budget", "6", "--seed", seed)
    bests = [f"{open_archive(Path(f'{seed}.db')).result.value:.6g}" for seed in (0, 1)]
    shown = said(0, "compare", "0.db", "1.db", "--plot", "both.svg")
    assert all(text in shown for text in ("seed 0", "seed 1", "picture: both.svg", *bests))
    worse = max(map(float, bests))
    assert f"{worse:.6g} or better at" in shown  # both runs reached it
    assert Path("both.svg").stat().st_size > 1000
    for kind in ("rank", "distribution"):
        said(0, "compare", "0.db", "1.db", "--plot", f"{kind}.png", "--kind", kind)
        assert Path(f"{kind}.png").read_bytes() != Path("both.svg").read_bytes()
    assert "got str 'edf'" in said(2, "compare", "0.db", "1.db", "--plot", "edf.png", "--kind", "edf")
    assert "2: 0.db" in said(0, "compare", "0.db", "0.db")  # equal titles: the files name the runs
    mipcash("run", "bowl.py", "--storage", "up.db", "-q", "--budget", "3", "--direction", "maximize")
    refused = said(2, "compare", "0.db", "up.db")
    assert "cannot be compared: their objectives are 'maximize loss' and 'minimize loss'" in refused
