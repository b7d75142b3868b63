"""A harness that cannot fail is worthless: every kind of wrong answer is reported, as are silence and death."""

from __future__ import annotations

import itertools
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
from tests.fuzz import record as recording
from tests.fuzz.__main__ import main
from tests.fuzz.clean import check_numbers
from tests.fuzz.described import Drawn, Parameter, Relation, Rule, Term, Value
from tests.fuzz.engine import SILENCE, Plan, _Crew
from tests.fuzz.kinds import Case, draw, gridded
from tests.fuzz.questions import begin, check_configspace, interview
from tests.fuzz.record import COMPARED, MEGABYTES, Record, refuses
from tests.fuzz.runs import _exhaust, _keep_going
from tests.fuzz.sketch import Sketch
from tests.fuzz.test_exact import numbers, rule, truth_of
from tests.fuzz.truth import Truth

PLAIN = Drawn(numbers("a", "b"), (), (rule("r0", {"a": 1.0, "b": 1.0}, "<=", 3.0),))
MIXED = Drawn((*numbers("a"), Parameter("x", "real", (), 0.0, 2.0)), (), (rule("r0", {"a": 1.0, "x": 1.0}, "<=", 3.0),))
EMPTY = replace(PLAIN, parts=(*PLAIN.parts, rule("r1", {"a": 1.0, "b": 1.0}, ">=", 5.0)))


def asked_of(drawn: Drawn, run: Callable[..., object] | None = None, solver: str = "default") -> Record:
    """All questions to a space, of one solver alone."""
    record = Record(0, "by hand")
    asked = begin(Case(0, "by hand", drawn, truth_of(drawn), 0), record, seed=0)
    assert asked is not None
    if run is None:
        interview(asked, (solver,))
    else:
        run(asked)
    return record


def wrong(record: Record) -> set[str]:
    return {d.question for d in record.disagreements}


def lie(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Any], Any]) -> None:
    """Let a question of the space be answered otherwise."""
    honest = getattr(mc.Space, name)

    def lying(self: Any, *given: Any, **options: Any) -> Any:
        return change(honest(self, *given, **options))

    monkeypatch.setattr(mc.Space, name, lying)


@pytest.mark.parametrize("drawn", [PLAIN, MIXED, EMPTY])
def test_right_answers_are_no_disagreement(drawn: Drawn) -> None:
    record = asked_of(drawn)
    assert not "\n".join(map(str, record.disagreements))
    assert record.asked["default"] >= 10


LIES: list[tuple[str, Drawn, Callable[[Any], Any], str]] = [
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
]  # fmt: skip


@pytest.mark.parametrize(("name", "drawn", "change", "question"), LIES)
def test_a_wrong_answer_is_a_disagreement(
    name: str, drawn: Drawn, change: Callable[[Any], Any], question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lie(monkeypatch, name, change)
    assert question in wrong(asked_of(drawn))


def test_exceptions_are_disagreements_unless_they_are_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, *given: object, **options: object) -> None:
        raise SolverError("a solver's answer breaks the rules")

    def empty(self: object, *given: object, **options: object) -> None:
        raise InfeasibleSpaceError("empty")

    monkeypatch.setattr(mc.Space, "optimum", fail)
    assert "optimum min" in wrong(asked_of(PLAIN))
    monkeypatch.setattr(mc.Space, "sample", empty)
    assert "sample" in wrong(asked_of(PLAIN))
    monkeypatch.setattr(mc.Space, "sample", lambda self, n: [{"a": 0, "b": 0}] * n)
    assert "sample" in wrong(asked_of(EMPTY))


def test_an_admitted_lack_of_proof_is_counted_for_solvers_asked_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "optimum", lambda s: replace(s, status="feasible"))
    assert "optimum min" in wrong(asked_of(PLAIN))
    named = asked_of(PLAIN, solver="highs")
    assert not {q for q in wrong(named) if q.startswith("optimum")}
    assert named.unproven["highs"] >= 2
    lie(monkeypatch, "optimum", lambda s: replace(s, config={"a": 9, "b": 9}))
    assert "optimum min" in wrong(asked_of(PLAIN, solver="highs"))


def test_only_a_solver_that_says_so_refuses() -> None:
    continuous = SolverError("toulbar2 cannot take 'x', which is continuous and not fixed")
    assert refuses("toulbar2", continuous)
    assert not refuses("default", continuous)
    assert not refuses("toulbar2", SolverError("a solver's answer breaks the rules as declared"))
    assert not refuses("toulbar2", ValueError("toulbar2 cannot take it"))


def test_numbers_that_are_not_clean() -> None:
    truth = truth_of(MIXED)
    for x, clean in ((1.0, True), (0.5, True), (1.0 + 1e-12, False), (1e-12, False), (0.0, True)):
        record = Record(0, "by hand")
        check_numbers(truth, record, "sample", {"a": 2, "x": x})
        assert bool(record.disagreements) != clean, x
    pinned = replace(MIXED, parts=(*MIXED.parts, rule("r1", {"a": 1.0, "x": 1.0}, ">=", 3.0)))
    record = Record(0, "by hand")
    check_numbers(truth_of(pinned), record, "sample", {"a": 2, "x": 1.0 + 1e-12})  # no room: nothing to keep away from
    assert not record.disagreements
    equal = replace(MIXED, parts=(rule("r0", {"a": 1.0, "x": 1.0}, "==", 3.0),))
    for x, clean in ((1.0 + 1e-10, True), (1.0 + 1e-8, False)):
        record = Record(0, "by hand")
        check_numbers(truth_of(equal), record, "sample", {"a": 2, "x": x})
        assert bool(record.disagreements) != clean, x


def test_runs_that_end_too_early_or_never(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(asked: Any) -> None:
        _exhaust(asked, int(asked.truth.legal_configs.sum()), "random")

    legal = [{"a": a, "b": b} for a in range(4) for b in range(4 - a)]
    for listed, stopped, fine in (
        (legal, BEST_OF_ALL, True),
        (legal[1:], BEST_OF_ALL, False),
        ([*legal, legal[0]], BEST_OF_ALL, False),
        ([*legal, {"a": 9, "b": 9}], BEST_OF_ALL, False),
        (legal, "budget", False),
    ):
        monkeypatch.setattr(mc, "minimize", _pretend(listed, stopped))
        assert ("run random" in wrong(asked_of(PLAIN, run))) != fine, (stopped, len(listed))
    for count, stopped, fine in ((8, "budget", True), (3, BEST_OF_ALL, False)):
        listed = [{"a": 0, "x": float(x)} for x in np.linspace(0.1, 1.9, count)]
        monkeypatch.setattr(mc, "minimize", _pretend(listed, stopped))
        assert ("run mixed" in wrong(asked_of(MIXED, _keep_going))) != fine


def _pretend(configs: list[dict[str, Any]], stopped: str) -> Callable[..., Any]:
    def minimize(loss: Callable[[dict[str, Any]], float], *given: object, **options: object) -> Any:
        for config in configs:
            loss(config)
        return type("Result", (), {"stopped": stopped})()

    return minimize


def test_silence_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SECONDS", 0.1)
    record = Record(0, "by hand")
    assert record.ask("hang", "default", lambda: [0 for _ in itertools.count() if False]) is None
    assert wrong(record) == {"hang"}
    assert record.ask("answer", "default", lambda: 1) == 1
    record.ask("hang", "default", lambda: [0 for _ in itertools.count() if False])
    assert record.hangs == recording.HANGS
    assert record.ask("answer", "default", lambda: 1) is None
    assert recording.SECONDS < SILENCE


def test_a_worker_that_dies_is_a_disagreement() -> None:
    crew = _Crew(Plan(solvers=("default",), runs=False), [0, 1], 1, None)
    crew._hire()
    crew._workers[0].process.kill()
    records = list(crew.records())
    assert [r.k for r in records] == [0, 1]
    assert "the process died" in records[0].disagreements[0].said
    assert records[1].asked["default"]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "table.md"
    quick = ["--spaces", "2", "--processes", "0", "--solvers", "default", "--no-runs", "--kinds", "products"]
    lie(monkeypatch, "count", lambda c: Count(c + 1, c.exact))
    assert main([*quick, "--out", str(out)]) == 1
    page = out.read_text(encoding="utf-8")
    assert "| products | 2 |" in page
    assert "repeat: python -m tests.fuzz --spaces 2 --seed 0" in page
    assert "count" in capsys.readouterr().out
    assert main(["--only", "1", "--solvers", "default", "--no-runs", "--kinds", "products"]) == 1
    assert 'mc.Space("drawn"' in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--solvers", "nobody"])


def test_a_run_goes_on_from_what_it_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = tmp_path / "kept.jsonl"
    quick = ["--processes", "0", "--solvers", "default", "--no-runs", "--kinds", "products", "--keep", str(keep)]
    main([*quick, "--spaces", "2"])
    lines = keep.read_text(encoding="utf-8").splitlines(keepends=True)
    marked = replace(Record.from_json(lines[0]), megabytes=MEGABYTES + 1, hangs=3)
    marked.wrong("count", "default", 1, 2)
    keep.write_text(marked.to_json() + "\n" + lines[1][:20], encoding="utf-8")
    assert main([*quick, "--spaces", "3"]) == 1
    figures = next(line for line in capsys.readouterr().out.splitlines()[::-1] if line.startswith("| all |"))
    assert figures.endswith("| 1 | 1 | 3 | 1 |")  # wrong answers, spaces with one, hangs, over 1 GB
    again = [Record.from_json(line).k for line in keep.read_text(encoding="utf-8").splitlines()]
    assert again == [0, 1, 2]


# -- a grid ---------------------------------------------------------------------------------------------------------


def on_a_grid(bound: float = 0.25) -> Case:
    """x y <= bound over the unit square, beside a category."""
    sketch = Sketch(np.random.default_rng(0))
    sketch.parameters.append(Parameter("c", "categorical", ("off", "on")))
    for name in ("x", "y"):
        gridded(sketch, name, Parameter(name, "real", (), 0.0, 1.0))
    sketch.settle()
    sketch.add(Rule("r0", Relation((Term(1.0, (Value("x"), Value("y"))),), "<=", bound)))
    drawn = replace(sketch.drawn, parameters=tuple(sketch.gridded.get(p.name, p) for p in sketch.parameters))
    return Case(0, "by hand", drawn, sketch.known, 0, tuple(sketch.gridded))


def asked_on_a_grid(case: Case) -> Record:
    record = Record(0, "by hand")
    asked = begin(case, record, seed=0)
    assert asked is not None
    interview(asked, COMPARED[:1])
    return record


GRID_LIES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("optimum", lambda s: replace(s, status="infeasible", config=None), "optimum min"),
    ("optimum", lambda s: replace(s, config={"c": "off", "x": 0.5, "y": 0.5 + 1e-6}), "optimum max"),
    ("optimum", lambda s: replace(s, config={"c": "off", "x": 1.1, "y": 0.0}), "optimum min"),
    ("optimum", lambda s: replace(s, value=s.value + 0.1), "optimum min"),
    ("optimum", lambda s: replace(s, bound=s.bound + 0.1), "optimum min"),
    ("conflict", lambda c: replace(c, rules=("r0",)), "conflict"),
    ("bounds", lambda b: b | {"x": replace(b["x"], high=0.9)}, "bounds"),
    ("bounds", lambda b: {"x": b["x"]}, "bounds"),
    ("is_legal", lambda legal: not legal, "is_legal"),
    ("count", lambda c: Count(1, True), "count"),
    ("sample", lambda found: [{"c": "off", "x": 1.0, "y": 1.0}] * 5, "sample"),
    ("nearest", lambda found: {"c": "off", "x": 1.0, "y": 1.0}, "nearest"),
]


@pytest.mark.parametrize(("name", "change", "question"), GRID_LIES)
def test_a_grid_sees_a_wrong_answer(
    name: str, change: Callable[[Any], Any], question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert question not in wrong(asked_on_a_grid(on_a_grid()))
    lie(monkeypatch, name, change)
    assert question in wrong(asked_on_a_grid(on_a_grid()))


def test_what_is_no_point_of_the_grid_may_be_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(self: object, *given: object, **options: object) -> None:
        raise InfeasibleSpaceError("empty")

    case = on_a_grid(-1e-3)
    assert case.truth.empty
    for name in ("sample", "nearest", "bounds"):
        monkeypatch.setattr(mc.Space, name, empty)
    assert not wrong(asked_on_a_grid(case)) & {"sample", "nearest", "bounds"}
    assert wrong(asked_on_a_grid(on_a_grid())) >= {"sample", "nearest", "bounds"}


def test_configspace_itself_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ConfigSpace")
    case = draw(0, 0, ("from_configspace",))
    record = Record(0, "by hand")
    asked = begin(case, record, 0)
    assert asked is not None
    check_configspace(asked)
    assert not record.disagreements
    monkeypatch.setattr(Truth, "violation", lambda self, config: None)
    check_configspace(asked)
    assert "ConfigSpace" in wrong(record)


def test_a_proof_under_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    legal = [{"a": a, "b": b} for a in range(4) for b in range(4 - a)]
    for stopped, fine in ((BEST_OF_ALL, True), ("space exhausted: proven optimum", False)):
        monkeypatch.setattr(mc, "minimize", _pretend(legal, stopped))
        found = wrong(asked_of(PLAIN, lambda asked: _exhaust(asked, len(legal), "hybrid", "noisy")))
        assert found == (set() if fine else {"proof under noise", "run hybrid"})
