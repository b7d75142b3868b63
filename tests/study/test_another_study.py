"""Journals and changed studies: a warning for another objective, an error for another space, and fresh starts."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import sharing
import tiny
from pyomo.gdp import Disjunct, Disjunction
from test_processes import finish, launch

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.space.compiled import declaration_of
from mipcash.study.minimize import run
from mipcash.study.progress import Progress
from mipcash.study.records.fingerprint import listing
from mipcash.study.records.objective import identity_of
from mipcash.study.storage import sqlite
from mipcash.study.storage.listings import differences, fingerprint
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.sqlite import read_journal

SCALE = 2.0
SEEN: list[float] = []


def go(objective: Any, storage: Any, budget: int, **options: Any) -> mc.Result:
    space = tiny.tiny_space()
    given = {"optimizer": tiny.Counter(space), "progress": False, **options}
    return mc.minimize(objective, space, budget, storage=storage, **given)


def told(objective: Any, storage: Any, budget: int) -> list[str]:
    """Run, and return the warnings about the objective."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        go(objective, storage, budget)
    return [str(w.message) for w in caught if "objective" in str(w.message)]


def other_loss(config: Any) -> float:
    return tiny.loss(config) + 1.0


# -- another objective ----------------------------------------------------------------------------------------------


def test_another_objective_is_warned_of_with_both_names_and_the_remedy(journal: Path) -> None:
    def interrupted(config: Any) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(interrupted, journal, 3)
    assert told(tiny.loss, journal, 2) == []  # no trial was finished
    assert told(tiny.loss, journal, 3) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):  # a warning that is raised as an error is given again
            with pytest.raises(UserWarning, match="another objective"):
                go(other_loss, journal, 4)
    (said,) = told(other_loss, journal, 4)
    assert f"the finished trials of {journal} were evaluated by another objective" in said
    assert "it was 'loss' and is 'other_loss' now" in said
    assert "kept, and mixed" in said
    assert "storage=mc.Journal(path, fresh=True) (mipcash run --fresh) or another storage=" in said
    assert told(other_loss, journal, 5) == []  # the warning is given once


def test_a_worker_with_another_objective_is_warned_of(journal: Path) -> None:
    place = sharing.in_file(journal)
    a, b = (mc.Study(tiny.tiny_space(), tiny.Counter(tiny.tiny_space()), storage=place.writer("")) for _ in range(2))
    run(a, tiny.loss, 2, progress=False)
    with pytest.warns(UserWarning, match=r"it was 'loss' and is 'other_loss' now"):
        run(b, other_loss, 3, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(b, other_loss, 4, progress=False)
    with pytest.warns(UserWarning, match=r"it was 'other_loss' and is 'loss' now"):
        run(a, tiny.loss, 5, progress=False)


SCRIPT = """
import sys, warnings
sys.path.insert(0, {folder!r})
import tiny
import mipcash as mc
{text}
space = tiny.tiny_space()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    mc.minimize(objective, space, int(sys.argv[2]), optimizer=tiny.Counter(space), storage=sys.argv[1], progress=False)
print([str(w.message) for w in caught if "objective" in str(w.message)])
"""
TIMES = "WEIGHT = 2\ndef times(x):\n    return x * WEIGHT\ndef objective(config):\n    return times(config['layers'])\n"


def test_the_same_function_is_recognised_in_another_process(journal: Path, tmp_path: Path) -> None:
    def said(text: str, budget: int) -> str:
        script = tmp_path / "script.py"
        script.write_text(SCRIPT.format(folder=str(Path(tiny.__file__).parent), text=text))
        command = [sys.executable, str(script), str(journal), str(budget)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert said(TIMES, 1) == said("import os\n" + TIMES, 2) == "[]"
    assert "is the same by name, and its source" in said(TIMES.replace("= 2", "= 3"), 3)


CLASS = "class Loss:\n    def __call__(self, config):\n        return config['x']\nobjective = Loss()\n"
NAMED = "config = {'x': 0}\ndef objective(config):\n    return [config for config in [config]][0]['x']\n"


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        (TIMES, TIMES.replace("    return times", "    # anew\n    return times"), True),
        (TIMES, TIMES.replace("(config)", "(\n  config,\n)").replace("times(c", "(times)(c"), True),
        (TIMES, TIMES.replace("x * W", "x + W"), False),
        (TIMES, TIMES.replace("'])", "']) + 1"), False),
        (CLASS, CLASS.replace("['x']", "['x']  # same"), True),
        (CLASS, CLASS.replace("['x']", "['x'] + 1"), False),
        (NAMED, NAMED.replace("0}", "1}"), True),  # the parameter hides the global variable of the same name
    ],
)
def test_the_code_of_an_objective_counts_and_its_formatting_does_not(
    text: str, other: str, same: bool, tmp_path: Path
) -> None:
    def objective(text: str) -> Any:
        path = tmp_path / "written.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[path.stem] = made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made.objective

    assert (digest(objective(text)) == digest(objective(other))) == same


def digest(objective: Any) -> str:
    identity = identity_of(objective)
    assert identity is not None
    return identity["digest"]


def closing(value: Any) -> Callable[[Any], float]:
    def objective(config: Any) -> Any:
        return config, value

    return objective


def test_closures_and_defaults_of_an_objective_count() -> None:
    arrays = np.arange(6.0), np.arange(6.0).reshape(2, 3), np.arange(6), np.array([0.0, 1, 2, 3, 4, 5.5])
    distinct = [None, True, 1, 1.0, "1", b"1", (1,), [1], {"a": 1}, {"a": 2}, {"a": [1, {"b": 2}]}, *arrays]
    assert len({digest(closing(value)) for value in [*distinct, tiny.loss, other_loss]}) == len(distinct) + 2
    assert len({digest(lambda c, k=k: c[k]) for k in range(3)}) == 3
    assert digest(closing({"a": 1, "b": 2})) == digest(closing({"b": 2, "a": 1}))
    assert digest(closing(np.arange(6.0))) == digest(closing(np.arange(6.0)))
    assert digest(closing(closing(1))) == digest(closing(closing(1))) != digest(closing(closing(2)))
    # other objects count by their type only
    assert digest(closing(object())) == digest(closing(object())) != digest(closing(tiny.tiny_space()))
    endless: list[Any] = []
    endless.append(endless)
    without_source = (max, float, eval("lambda config: 1.0"), {"loss": tiny.loss, "ms": max})
    assert {identity_of(f) for f in (closing(endless), *without_source)} == {
        None
    }  # objectives that cannot be inspected


def test_lambdas_on_one_line_are_distinguished() -> None:
    both = {"loss": lambda c: c["x"], "ms": lambda c: (lambda d: d["y"])(c)}
    assert digest(both["loss"]) != digest(both["ms"])
    assert digest(both["loss"]) == digest(lambda c: c["x"])
    assert digest(lambda c: c["lr"]) == (digest(lambda c: c["lr"]), 4)[0]  # code beside a lambda does not count
    assert digest(both) == digest(dict(reversed(both.items())))
    assert digest(both) != digest({**both, "ms": both["loss"]})


def test_globals_that_an_objective_reads_count_and_variables_it_changes_do_not(
    monkeypatch: pytest.MonkeyPatch, journal: Path
) -> None:
    seen: list[Any] = []
    counts: dict[str, int] = {}
    calls = 0

    def objective(config: Any) -> float:
        nonlocal calls
        calls += 1
        seen.append(config)
        SEEN.append(1.0)
        counts["all"] = counts.get("all", 0) + 1
        return SCALE * tiny.loss(config)

    before = digest(objective)
    assert [told(objective, journal, budget) for budget in (1, 3, 5)] == [[], [], []]
    assert calls == len(seen) == counts["all"] == 5
    assert digest(objective) == before
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert digest(objective) != before


@dataclass
class Shifted:
    shift: float
    calls: int = 0

    def __call__(self, config: Any) -> float:
        self.calls += 1
        return tiny.loss(config) + self.shift

    def shifted(self, config: Any) -> float:
        return self(config)


def test_partial_functions_wrapped_functions_methods_and_objects_are_compared() -> None:
    def scaled(config: Any, factor: float) -> float:
        return factor * tiny.loss(config)

    partials = [functools.partial(scaled, factor=k) for k in (1.0, 2.0, 2.0)]
    assert digest(partials[0]) != digest(partials[1]) == digest(partials[2])

    def timed(function: Any) -> Any:
        return functools.wraps(function)(lambda config: float(function(config)))

    assert digest(timed(tiny.loss)) == digest(tiny.loss) != digest(timed(other_loss))
    assert digest(functools.lru_cache(other_loss)) == digest(other_loss)
    assert digest(Shifted(1.0).shifted) != digest(Shifted(2.0).shifted)
    # only attributes that calls do not change count
    assert digest(Shifted(1.0)) == digest(Shifted(1.0, 9)) != digest(Shifted(2.0))


# -- another space: other numbers, or another order of parameters and rules -------------------------------------------


def mutable(cap: float = 3.0, when: float = 3.0, extra: float = 6.0, factor: float = 1.0) -> mc.Space:
    """Return a space with rules and constraints over mutable Params. Their texts do not depend on the values."""
    space = mc.Space("mutable")
    model, x, y = space.model, space.integer("x", 0, 9), space.real("y", 0.0, 5.0)
    act = space.categorical("act", ["relu", "tanh"])
    model.cap, model.extra = pyo.Param(initialize=cap, mutable=True), pyo.Param(initialize=extra, mutable=True)
    model.slope = pyo.Param([1, 2], initialize={1: when, 2: 1.0}, mutable=True)
    space.rule("bound", x <= model.cap)
    space.rule("slope", model.slope[1] * x + y <= 20)
    model.sum = pyo.Expression(expr=factor * x + y)
    model.capped = pyo.Constraint(expr=model.sum <= model.extra)
    model.logic = pyo.LogicalConstraint(expr=act.boolean("relu").implies(act.boolean("relu")))
    model.low, model.high = Disjunct(), Disjunct()
    model.low.small = pyo.Constraint(expr=x <= model.cap)
    model.high.large = pyo.Constraint(expr=x >= 7)
    model.either = Disjunction(expr=[model.low, model.high])
    model.auxiliary = pyo.Var(bounds=(0, 3))
    return space


def order(names: str, rules: str = "ab") -> mc.Space:
    space = mc.Space("order")
    for name in names:
        space.integer(name, 0, 5)
    for rule in rules:
        space.rule(rule, space[rule] <= 4)
    return space


def edited(statement: str) -> Callable[[], mc.Space]:
    """Return a function that makes a space and executes a statement on its model."""

    def made() -> mc.Space:
        space = mutable()
        exec(statement, {"model": space.model, "pyo": pyo, "relu": space["act"].boolean("relu")})
        return space

    return made


CHANGES: list[tuple[Callable[[], mc.Space], str]] = [
    (lambda: mutable(4), r"arithmetic of rule 'bound' was .* <= 3.0 and is .* <= 4.0 now"),
    (lambda: mutable(4), "Constraint 'low.small' was .* <= 3.0 and is .* <= 4.0"),
    (lambda: mutable(when=2), r"arithmetic of rule 'slope' was .*6.0\*.* and is .*4.0\*"),
    (lambda: mutable(extra=7), "Constraint 'capped' was .* <= 6.0 and is .* <= 7.0 now"),
    (lambda: mutable(factor=2), "Constraint 'capped' was"),
    (edited("model.extra.set_value(7)"), "Constraint 'capped' was .* <= 6.0 and is .* <= 7.0 now"),
    (edited("model.either.xor = False"), "disjunction 'either' was exactly one .* and is at least one"),
    (edited("model.high.large.deactivate()"), "Constraint 'high.large' is gone"),
    (edited("model.high.deactivate()"), "disjunction 'either' was low, high and is low now"),
    (edited("model.logic.set_value(~relu)"), "LogicalConstraint 'logic' was"),
    (edited("model.parameters['x'].z[9].fix(0)"), "the fixing of .* is new"),
    (edited("model.parameters['y'].x.setub(4)"), "the bounds of .*0.0, 5.0.*0.0, 4"),
    (edited("model.auxiliary.domain = pyo.Integers"), "variable 'auxiliary' was Reals and is Integers now"),
]


@pytest.mark.parametrize(("now", "named"), CHANGES, ids=[c[1] for c in CHANGES])
def test_a_changed_space_is_detected_and_the_change_named(now: Callable[[], mc.Space], named: str) -> None:
    before, later = listing(mutable()), listing(now())
    assert fingerprint(before) != fingerprint(later)
    found = differences(before, later)
    assert any(re.search(named, sentence) for sentence in found), found
    assert before == listing(mutable())


def test_a_changed_order_is_named_unless_another_difference_explains_it() -> None:
    assert differences(listing(order("abc")), listing(order("bac"))) == [
        "the order of the parameters was 'a', 'b', 'c' and is 'b', 'a', 'c' now"
    ]
    (said,) = differences(listing(order("abc")), listing(order("abc", "ba")))
    assert said == "the order of the rules was 'a', 'b' and is 'b', 'a' now"
    (said,) = differences(listing(tiny.tiny_space(10)), listing(tiny.tiny_space(11)))
    assert said.startswith("rule 'layers are capped' was ")
    more = tiny.tiny_space()
    more.real("dropout", 0.0, 0.5)
    found = differences(listing(tiny.tiny_space()), listing(more))
    assert found[0] == "parameter 'dropout' is new"
    assert not any("the order of" in sentence or "arithmetic" in sentence for sentence in found)


def test_a_journal_with_other_numbers_or_another_order_is_refused(journal: Path) -> None:
    with mc.Study(mutable(), "random", storage=journal) as study:
        study.tell(study.ask(), 1.0)
    with pytest.raises(StorageError, match="arithmetic of rule 'bound'"):
        mc.Study(mutable(4), "random", storage=journal)
    space = mutable()
    declaration_of(space).parameters = dict(reversed(space.parameters.items()))
    with pytest.raises(StorageError, match="the order of the parameters was"):
        mc.Study(space, "random", storage=journal)
    with mc.Study(mutable(), "random", storage=journal) as study:
        assert study.ask().number == 1


# -- fresh starts: the old journal is renamed together with the files of SQLite beside it -----------------------------


class Notes(Progress):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def anew(storage: Any, budget: int = 2, **options: Any) -> mc.Result:
    return go(tiny.loss, mc.Journal(storage, True), budget, **options)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_the_old_journal_is_renamed_to_the_first_free_name_and_the_name_reported(journal: Path) -> None:
    for budget, expected in ((1, []), (2, ["run.old-1.db"]), (3, ["run.old-2.db"])):
        notes = Notes()
        assert anew(journal, budget, progress=notes).n_done == budget
        assert notes.notes == [f"the journal that was there is {journal.with_name(n)} now" for n in expected]
    (journal.parent / "run.old-1.db").unlink()
    with sqlite3.connect(journal) as database:
        database.execute("PRAGMA journal_mode = WAL")
    database.close()
    anew(f"sqlite:///{journal}", 4)
    assert names(journal.parent) == ["run.db", "run.old-1.db", "run.old-2.db"]
    assert [len(read_journal(journal.with_name(n))[1]) for n in names(journal.parent)] == [4, 3, 2]
    assert go(tiny.loss, mc.Journal(journal, False), 5).n_done == 5
    with pytest.raises(ValueError, match="seed"):
        anew(journal, seed=-1)  # the study cannot start, so the journal is not renamed
    assert len(names(journal.parent)) == 3


def test_a_fresh_start_is_refused_for_a_storage_that_cannot_be_renamed(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for storage in (None, ":memory:"):
        assert anew(storage).n_done == 2
    assert names(tmp_path) == []
    with pytest.raises(StorageError, match="is a folder"):
        anew(tmp_path)
    said = r"postgresql://[.]{3}@host/db is no file; name a new study, [?]study=NAME, or another"
    with pytest.raises(StorageError, match=said):
        anew("postgresql://ann:s3cr3t@host/db")
    with pytest.raises(StorageError, match=r"the storage MemoryStorage .* is no file; make a new one"):
        anew(MemoryStorage())
    for storage in (journal, f"sqlite:///{journal}"):
        with mc.Study(tiny.tiny_space(), tiny.Counter(tiny.tiny_space()), storage=storage) as study:
            for again in (journal, f"sqlite:///{journal}"):
                with pytest.raises(StorageError, match="in use by another study"):
                    anew(again)
            study.ask()
    assert names(journal.parent) == ["run.db"]


def test_an_interrupted_write_is_rolled_back_before_renaming(journal: Path) -> None:
    finish(launch(journal, "--die", "outcome", "4"), -signal.SIGKILL)
    assert "run.db-journal" in names(journal.parent)
    anew(journal)
    assert [name for name in names(journal.parent) if name.startswith("run.db")] == ["run.db"]
    rows = read_journal(journal.with_name("run.old-1.db"))[1]
    assert [row.status for row in rows] == ["done"] * 4 + ["pending"]
    assert len(read_journal(journal)[1]) == 2


def test_leftover_files_of_sqlite_are_renamed_too(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that no file of the old journal stays, because SQLite would read it as part of the new journal."""

    def busy(path: Path) -> None:
        raise StorageError(f"the journal {path} cannot be used: database is locked")

    monkeypatch.setattr(sqlite, "read_journal", busy)
    ends = ("", "-journal", "-shm", "-wal")
    for end in ends:
        Path(f"{journal}{end}").write_bytes(b"SQLite format 3\0" * 1000)
    anew(journal)
    assert names(journal.parent) == ["run.db", *(f"run.old-1.db{end}" for end in ends)]
    assert len(read_journal(journal)[1]) == 2


def test_a_symlink_is_kept_and_points_to_the_new_journal(journal: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    file = tmp_path / "far" / "kept.db"
    os.symlink(file, journal)
    anew(journal)
    notes = Notes()
    anew(journal, 3, progress=notes)
    assert notes.notes == [f"the journal that was there is {file.with_name('kept.old-1.db')} now"]
    assert journal.is_symlink()
    assert [len(read_journal(path)[1]) for path in (file, file.with_name("kept.old-1.db"))] == [3, 2]
