"""Tests of the harness: it reports every kind of wrong answer, questions that hang and workers that die."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import InfeasibleSpaceError, SolverError
from mipcash.space.counting import Count
from mipcash.study.policies.policy import BEST_OF_ALL
from tests.fuzz import engine, runs
from tests.fuzz import record as recording
from tests.fuzz.__main__ import main
from tests.fuzz.clean import check_numbers
from tests.fuzz.described import Drawn, Parameter, Relation, Rule, Term, Value
from tests.fuzz.engine import SILENCE, Plan, examine_all
from tests.fuzz.kinds import Case, draw, gridded
from tests.fuzz.questions import begin, check_configspace, interview
from tests.fuzz.record import MEGABYTES, Record, imprecise, refuses
from tests.fuzz.runs import _exhaust, _keep_going
from tests.fuzz.sketch import Sketch
from tests.fuzz.test_exact import numbers, rule, truth_of
from tests.fuzz.truth import Truth
from tests.named import OPTIMIZERS


def by_hand(*parts: Rule, parameters: tuple[Parameter, ...] = numbers("a", "b")) -> Case:
    drawn = Drawn(parameters, (), parts)
    return Case(0, "by hand", drawn, truth_of(drawn), 0)


def on_a_grid(bound: float = 0.25) -> Case:
    """Return the space x y <= bound over the unit square, with a category."""
    sketch = Sketch(np.random.default_rng(0))
    sketch.parameters.append(Parameter("c", "categorical", ("off", "on")))
    for name in ("x", "y"):
        gridded(sketch, name, Parameter(name, "real", (), 0.0, 1.0))
    sketch.settle()
    sketch.add(Rule("r0", Relation((Term(1.0, (Value("x"), Value("y"))),), "<=", bound)))
    drawn = replace(sketch.drawn, parameters=tuple(sketch.gridded.get(p.name, p) for p in sketch.parameters))
    return Case(0, "by hand", drawn, sketch.known, 0, tuple(sketch.gridded))


AT_MOST_3, X = rule("r0", {"a": 1.0, "x": 1.0}, "<=", 3.0), (*numbers("a"), Parameter("x", "real", (), 0.0, 2.0))
PLAIN = by_hand(rule("r0", {"a": 1.0, "b": 1.0}, "<=", 3.0))
EMPTY = by_hand(*PLAIN.drawn.parts, rule("r1", {"a": 1.0, "b": 1.0}, ">=", 5.0))
MIXED, GRID = by_hand(AT_MOST_3, parameters=X), on_a_grid()
LEGAL = [{"a": a, "b": b} for a in range(4) for b in range(4 - a)]


def asked_of(case: Case, run: Callable[..., object] | None = None, solver: str = "default") -> Record:
    """Ask one solver every question about a space, or only ``run`` if given."""
    record = Record(0, "by hand")
    asked = begin(case, record, seed=0)
    assert asked is not None
    if run is None:
        interview(asked, (solver,))
    else:
        run(asked)
    return record


def wrong(record: Record) -> set[str]:
    return {d.question for d in record.disagreements}


def lie(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Any], Any]) -> None:
    """Replace the answers of a method of ``Space``."""
    honest = getattr(mc.Space, name)
    monkeypatch.setattr(mc.Space, name, lambda self, *given, **options: change(honest(self, *given, **options)))


def raising(error: Exception) -> Callable[..., None]:
    def method(self: object, *given: object, **options: object) -> None:
        raise error

    return method


@pytest.mark.parametrize("case", [PLAIN, MIXED, EMPTY, GRID])
def test_right_answers_are_no_disagreement(case: Case) -> None:
    record = asked_of(case)
    assert not "\n".join(map(str, record.disagreements))
    assert record.asked["default"] >= 10


LIES: list[tuple[str, Case, Callable[[Any], Any], str]] = [
    ("optimum", PLAIN, lambda s: replace(s, value=s.value + 1.0, bound=s.bound + 1.0), "optimum min"),
    ("optimum", PLAIN, lambda s: replace(s, status="infeasible", config=None), "optimum max"),
    ("optimum", PLAIN, lambda s: replace(s, bound=s.bound + 1e-3), "optimum min"),
    ("optimum", PLAIN, lambda s: replace(s, bound=s.bound - 1e-3), "optimum min"),
    ("optimum", PLAIN, lambda s: replace(s, config={"a": 9, "b": 9}), "optimum min"),
    ("optimum", PLAIN, lambda s: replace(s, config={"a": 0}), "optimum min"),
    ("optimum", MIXED, lambda s: replace(s, config={"a": 2, "x": 1.0 + 1e-7}), "optimum min"),
    ("optimum", EMPTY, lambda s: replace(s, status="unknown"), "optimum min"),
    ("count", PLAIN, lambda c: Count(c + 1, c.exact), "count"),
    ("count", PLAIN, lambda c: Count(c, False), "count"),
    ("conflict", PLAIN, lambda c: replace(c, rules=("r0",)), "conflict"),
    ("conflict", EMPTY, lambda c: replace(c, rules=("r0",)), "conflict"),
    ("conflict", EMPTY, lambda c: replace(c, rules=()), "conflict"),
    ("conflict", EMPTY, lambda c: replace(c, relaxations=tuple(replace(r, by=r.by * 0.99) for r in c.relaxations)), "relaxation"),
    ("conflict", EMPTY, lambda c: replace(c, relaxations=c.relaxations[:1]), "relaxation"),
    ("explain", EMPTY, lambda t: "space 'drawn' is not empty", "explain"),
    ("bounds", PLAIN, lambda b: b | {"a": replace(b["a"], values=b["a"].values[:-1])}, "bounds"),
    ("bounds", PLAIN, lambda b: b | {"a": replace(b["a"], always=False)}, "bounds"),
    ("bounds", MIXED, lambda b: b | {"x": replace(b["x"], high=1.999)}, "bounds"),
    ("bounds", MIXED, lambda b: {"a": b["a"]}, "bounds"),
    ("is_legal", PLAIN, lambda legal: not legal, "is_legal"),
    ("sample", PLAIN, lambda found: [*found[1:], {"a": 3, "b": 1}], "sample"),
    ("sample", PLAIN, lambda found: found[1:], "sample"),
    ("sample", MIXED, lambda found: [*found[1:], {"a": 2, "x": 1.0 + 1e-10}], "sample"),
    ("nearest", PLAIN, lambda config: {"a": 9, "b": 9}, "nearest"),
    ("optimum", GRID, lambda s: replace(s, status="infeasible", config=None), "optimum min"),
    ("optimum", GRID, lambda s: replace(s, config={"c": "off", "x": 1.1, "y": 0.0}), "optimum min"),
    ("optimum", GRID, lambda s: replace(s, bound=s.bound + 0.1), "optimum min"),
    ("bounds", GRID, lambda b: b | {"x": replace(b["x"], high=0.9)}, "bounds"),
    ("count", GRID, lambda c: Count(1, True), "count"),
    ("sample", GRID, lambda found: [{"c": "off", "x": 1.0, "y": 1.0}] * 5, "sample"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "case", "change", "question"), LIES)
def test_a_wrong_answer_is_a_disagreement(
    name: str, case: Case, change: Callable[[Any], Any], question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lie(monkeypatch, name, change)
    assert question in wrong(asked_of(case))


def test_exceptions_are_disagreements_unless_they_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mc.Space, "optimum", raising(SolverError("a solver's answer breaks the rules")))
    monkeypatch.setattr(mc.Space, "sample", raising(InfeasibleSpaceError("empty")))
    assert wrong(asked_of(PLAIN)) == {"optimum min", "optimum max", "sample"}
    monkeypatch.setattr(mc.Space, "sample", lambda self, n: [{"a": 0, "b": 0}] * n)
    assert "sample" in wrong(asked_of(EMPTY))


def test_a_space_that_is_empty_on_the_grid_may_have_legal_points(monkeypatch: pytest.MonkeyPatch) -> None:
    case, names = on_a_grid(-1e-3), {"sample", "nearest", "bounds"}
    assert case.truth.empty
    for name in names:
        monkeypatch.setattr(mc.Space, name, raising(InfeasibleSpaceError("empty")))
    assert not wrong(asked_of(case)) & names
    assert wrong(asked_of(GRID)) >= names


def test_an_admitted_lack_of_proof_is_counted_for_solvers_asked_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "optimum", lambda s: replace(s, status="feasible"))
    assert "optimum min" in wrong(asked_of(PLAIN))
    named = asked_of(PLAIN, solver="highs")
    assert not {q for q in wrong(named) if q.startswith("optimum")}
    assert named.unproven["highs"] >= 2
    lie(monkeypatch, "optimum", lambda s: replace(s, config={"a": 9, "b": 9}))
    assert "optimum min" in wrong(asked_of(PLAIN, solver="highs"))


def test_only_known_errors_of_a_named_solver_are_refusals() -> None:
    continuous = SolverError("toulbar2 cannot take 'x', which is continuous and not fixed")
    assert refuses("toulbar2", continuous)
    assert not refuses("default", continuous)
    assert not refuses("toulbar2", SolverError("a solver's answer breaks the rules as declared"))
    assert not refuses("toulbar2", ValueError("toulbar2 cannot take it"))


def test_lack_of_precision_is_a_refusal_of_the_solver_that_says_so() -> None:
    coarse = mc.Space("coarse")
    c = coarse.categorical("c", ["a", "b", "c"])
    x, y = coarse.real("x", 1e-6, 1e9, log=True, when=c.is_("b")), coarse.real("y", 0.0, 1e6)
    coarse.rule("sum", 1e6 * x + 1e6 * y == 5e11)
    coarse.rule("difference", x - y == 1.000007614e-06)
    coarse.rule("share", y - 3 * x >= -460000.0)
    with pytest.raises(SolverError) as refused:
        coarse.optimum(c.is_("a"), solver="highs")
    assert refuses("highs", refused.value)
    assert not refuses("scip", refused.value)
    assert not refuses("default", refused.value)
    assert imprecise(refused.value)
    assert not imprecise(SolverError(str(refused.value)))


PINNED = rule("r1", {"a": 1.0, "x": 1.0}, ">=", 3.0)
"""With ``AT_MOST_3`` this rule leaves no room inside the inequality."""


@pytest.mark.parametrize(
    ("rules", "x", "clean"),
    [
        ((AT_MOST_3,), 1.0, True),
        ((AT_MOST_3,), 0.5, True),
        ((AT_MOST_3,), 1.0 + 1e-12, False),
        ((AT_MOST_3,), 1e-12, False),
        ((AT_MOST_3,), 0.0, True),
        ((AT_MOST_3, PINNED), 1.0 + 1e-12, True),
        ((rule("r0", {"a": 1.0, "x": 1.0}, "==", 3.0),), 1.0 + 1e-10, True),
        ((rule("r0", {"a": 1.0, "x": 1.0}, "==", 3.0),), 1.0 + 1e-8, False),
    ],
)
def test_numbers_that_are_not_clean_are_disagreements(rules: tuple[Rule, ...], x: float, clean: bool) -> None:
    record = Record(0, "by hand")
    check_numbers(by_hand(*rules, parameters=X).truth, record, "sample", {"a": 2, "x": x})
    assert bool(record.disagreements) != clean


def pretend(configs: list[dict[str, Any]], stopped: str) -> Callable[..., Any]:
    def minimize(loss: Callable[[dict[str, Any]], float], *given: object, **options: object) -> Any:
        for config in configs:
            loss(config)
        return type("Result", (), {"stopped": stopped})()

    return minimize


@pytest.mark.parametrize(
    ("optimizer", "loss", "listed", "stopped", "expected"),
    [
        ("random", "scattered", LEGAL, BEST_OF_ALL, set()),
        ("random", "scattered", LEGAL[1:], BEST_OF_ALL, {"run random"}),
        ("random", "scattered", [*LEGAL, LEGAL[0]], BEST_OF_ALL, {"run random"}),
        ("random", "scattered", [*LEGAL, {"a": 9, "b": 9}], BEST_OF_ALL, {"run random"}),
        ("random", "scattered", LEGAL, "budget", {"run random"}),
        ("hybrid", "noisy", LEGAL, BEST_OF_ALL, set()),
        ("hybrid", "noisy", LEGAL, "space exhausted: proven optimum", {"proof under noise", "run hybrid"}),
    ],
)
def test_runs_that_do_not_exhaust_the_space_are_disagreements(
    optimizer: str, loss: str, listed: Any, stopped: str, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mc, "minimize", pretend(listed, stopped))
    assert wrong(asked_of(PLAIN, lambda asked: _exhaust(asked, len(LEGAL), optimizer, loss))) == expected


@pytest.mark.parametrize(("count", "stopped", "fine"), [(8, "budget", True), (3, BEST_OF_ALL, False)])
def test_a_mixed_run_that_ends_early_is_a_disagreement(
    count: int, stopped: str, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [{"a": 0, "x": float(x)} for x in np.linspace(0.1, 1.9, count)]
    monkeypatch.setattr(mc, "minimize", pretend(listed, stopped))
    assert ("run mixed" in wrong(asked_of(MIXED, _keep_going))) != fine


def test_legality_is_compared_with_configspace(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ConfigSpace")
    case = draw(0, 0, ("from_configspace",))
    assert not asked_of(case, check_configspace).disagreements
    monkeypatch.setattr(Truth, "violation", lambda self, config: None)
    assert "ConfigSpace" in wrong(asked_of(case, check_configspace))


def test_a_question_without_an_answer_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SECONDS", 0.1)
    record = Record(0, "by hand")
    assert record.ask("hang", "default", lambda: [0 for _ in itertools.count() if False]) is None
    assert wrong(record) == {"hang"}
    assert record.ask("answer", "default", lambda: 1) == 1
    record.ask("hang", "default", lambda: [0 for _ in itertools.count() if False])
    assert record.hangs == recording.HANGS
    assert record.ask("answer", "default", lambda: 1) is None
    assert recording.SECONDS < SILENCE


def test_a_worker_that_dies_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    killed, wait, before = list[Any](), engine.wait, set(multiprocessing.active_children())

    def killing(pipes: Any, timeout: float) -> Any:
        killed.extend([p for p in multiprocessing.active_children() if p not in before][: not killed])
        killed[0].kill()
        return wait(pipes, timeout)

    monkeypatch.setattr(engine, "wait", killing)
    records = list(examine_all(Plan(solvers=("default",), runs=False), [0, 1], 1, None))
    assert [r.k for r in records] == [0, 1]
    assert "the process died" in records[0].disagreements[0].said
    assert records[1].asked["default"]


QUICK = ["--processes", "0", "--solvers", "default", "--no-runs", "--kinds", "products"]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "table.md"
    lie(monkeypatch, "count", lambda c: Count(c + 1, c.exact))
    assert main([*QUICK, "--spaces", "1", "--out", str(out)]) == 1
    page = out.read_text(encoding="utf-8")
    assert "| products | 1 |" in page
    assert "repeat: python -m tests.fuzz --spaces 1 --seed 0" in page
    assert "count" in capsys.readouterr().out
    assert main([*QUICK, "--only", "1"]) == 1
    assert 'mc.Space("drawn"' in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--solvers", "nobody"])


def test_a_run_resumes_from_its_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = tmp_path / "kept.jsonl"
    # a process per space: in this one, the memory of earlier tests would count
    run = [*QUICK, "--processes", "1", "--keep", str(keep)]
    main([*run, "--spaces", "2"])
    lines = keep.read_text(encoding="utf-8").splitlines(keepends=True)
    marked = replace(Record.from_json(lines[0]), megabytes=MEGABYTES + 1, hangs=3)
    marked.wrong("count", "default", 1, 2)
    keep.write_text(marked.to_json() + "\n" + lines[1][:20], encoding="utf-8")
    assert main([*run, "--spaces", "3"]) == 1
    figures = next(line for line in capsys.readouterr().out.splitlines()[::-1] if line.startswith("| all |"))
    assert figures.endswith("| 1 | 1 | 3 | 1 |")  # wrong answers, spaces with one, hangs, over 1 GB
    again = [Record.from_json(line).k for line in keep.read_text(encoding="utf-8").splitlines()]
    assert again == [0, 1, 2]


def test_every_optimizer_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = set()
    monkeypatch.setattr(runs, "_exhaust", lambda asked, left, optimizer, loss: drawn.add(optimizer))
    for seed in range(200):
        asked = begin(PLAIN, Record(0, "by hand"), seed=seed)
        assert asked is not None
        runs.check_run(asked)
    assert drawn == {*OPTIMIZERS}
