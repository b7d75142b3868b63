"""Exact methods of a space (count, bounds, nearest) against enumeration; explanations, written programs, batches."""

from __future__ import annotations

import itertools
from pathlib import Path

import highspy
import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import ConfigurationError, InfeasibleSpaceError, SolverError, SpaceExhaustedError
from mipcash.space.compiled import compiled
from tests.named import installed
from tests.spaces import bound_numbers, conv_net, discrete, loss


def knapsack() -> mc.Space:
    """Space of six integers with two rules. Its 3^6 settings can be enumerated in plain Python."""
    space = mc.Space("knapsack")
    x = [space.integer(f"x{i}", 0, 2) for i in range(6)]
    space.rule("weight", sum((i + 1) * v for i, v in enumerate(x)) <= 12)
    space.rule("pair", x[0] * x[1] + x[2] >= 1)
    return space


def knapsack_legal() -> list[dict[str, int]]:
    found = []
    for x in itertools.product(range(3), repeat=6):
        if sum((i + 1) * v for i, v in enumerate(x)) <= 12 and x[0] * x[1] + x[2] >= 1:
            found.append({f"x{i}": v for i, v in enumerate(x)})
    return found


def test_count_and_bounds_are_the_enumerated_ones():
    legal, space = knapsack_legal(), knapsack()
    assert (space.count().number, space.count().exact) == (len(legal), True)
    bounds = space.bounds()
    for i in range(6):
        values = tuple(sorted({c[f"x{i}"] for c in legal}))
        assert bounds[f"x{i}"].values == values
        assert (bounds[f"x{i}"].low, bounds[f"x{i}"].high) == (values[0], values[-1])
    assert discrete().count().number == 11 * 5  # at most two of four bits, times green, blue and three kinds of red


def test_many_values_are_reported_by_the_first_and_the_last():
    space = mc.Space("wide")
    space.integer("units", 8, 512, step=8)
    space.integer("few", 1, 5)
    bounds = space.bounds()
    assert str(bounds["units"]) == "8, 16, 24, ..., 512 (64 values)"
    assert str(bounds["few"]) == "1, 2, 3, 4, 5"


def test_bounds_of_numbers_and_conditional_parameters():
    space = bound_numbers()
    level = space["level"]
    space.rule("some level", level >= 2)
    found = space.bounds()
    assert (found["size"].low, found["size"].high) == (1, 170)  # size + 40 * 2 <= 250
    assert found["extra"].high == pytest.approx(5.0)
    assert found["extra"].low == pytest.approx(1.0)
    assert not found["extra"].always
    assert found["level"].values == (2, 3, 4)
    assert found["a"].high == pytest.approx(1.0)
    never = mc.Space("never")
    mode = never.categorical("mode", ["on", "off"])
    never.real("x", 0, 1, when=mode["on"])
    never.rule("always off", mode["off"] >= 1)
    assert list(never.bounds()) == ["mode"]


def test_nearest_repairs_any_input():
    space = bound_numbers()
    for given in (
        {},
        {"a": 0.9, "b": 0.7, "kind": "deep", "size": 299, "extra": 7, "level": 1, "foo": 3},
        {"a": float("nan"), "b": "x", "kind": "unknown", "size": 12.7, "level": -3},
        {"kind": "plain", "extra": 3.0},
    ):
        assert space.validate(space.nearest(given)) == []
    space.real("free", 2.0, 6.0)
    assert space.nearest({"kind": "plain"})["free"] == 4.0
    assert space.nearest({"free": 9.0})["free"] == 6.0
    with pytest.raises(ConfigurationError, match="dict"):
        space.nearest([1, 2])
    order = mc.Space("order")
    modules = [order.module(m, {"none": {}, "some": {}}) for m in "abc"]
    o = order.ordering("o", modules)
    order.rule("a first", o.position(modules[0]) <= 1)
    mended = order.nearest({"a": "some", "b": "none", "c": "none", "o": ("b", "a", "c")})
    assert (mended["o"][0], mended["a"]) == ("a", "some")


def ordered() -> mc.Space:
    """Space of an ordering, conditional parameters and levels that are or are not numbers, with 176 configurations."""
    space = mc.Space("ordered")
    modules = [space.module(m, {"none": {}, "some": {"k": mc.Integer(1, 3)}}) for m in "ab"]
    order = space.ordering("order", modules)
    size, kind = space.ordinal("size", [1, 2, 8]), space.categorical("kind", ["p", "q"])
    space.ordinal("name", ["low", "middle", "high"], when=kind["p"])
    space.rule("first", order.position(modules[0]) <= kind["q"] + modules[1]["some"])
    space.rule("size", size <= 2 + 6 * modules[0]["some"])
    return space


def distance(space: mc.Space, given: dict[str, object], found: dict[str, object]) -> float:
    """The distance of ``Space.nearest``, by its documentation."""
    total = 0.0
    for name in space.parameters:
        a, b, domain = given.get(name), found.get(name), space.parameters[name].domain
        if name not in given or name not in found:
            total += name in given or (name in found and name in {"name", "a.some.k", "b.some.k"})
        elif name == "order":
            total += sum(a.index(m) != b.index(m) for m in b)
        elif isinstance(domain, mc.Integer):
            total += abs(a - b) / (domain.high - domain.low)
        elif name in ("size", "name"):
            values = list(domain.values)
            total += abs(values.index(a) - values.index(b)) / (len(values) - 1)
        else:
            total += a != b
    return total


def test_no_legal_configuration_is_nearer_than_the_nearest() -> None:
    space = ordered()
    legal = list({repr(c): c for c in space.sample(6000, seed=0)}.values())
    assert len(legal) == space.count()
    rng = np.random.default_rng(1)
    illegal = 0
    for _ in range(40):
        given = {n: v for c in rng.choice(legal, 3) for n, v in c.items() if rng.random() < 0.8}
        given.setdefault("order", ("b", "a"))
        found = space.nearest(given)
        illegal += not space.is_legal(given)
        best = min(distance(space, given, c) for c in legal)
        assert distance(space, given, found) == pytest.approx(best, abs=2e-3)
    assert illegal >= 20


def test_why_illegal_names_rules_values_and_the_nearest_configuration():
    space = bound_numbers()
    text = space.why_illegal({"a": 0.9, "b": 0.7, "kind": "plain", "size": 299, "level": 1})
    assert "'mixture'" in text
    assert "'memory'" in text
    assert "nearest legal configuration" in text
    assert space.why_illegal(space.sample(1)[0]) == ""


def test_an_empty_space_is_refused_at_minimize_with_the_reason():
    space = mc.Space("empty")
    x, y = space.integer("x", 0, 9), space.real("y", 0, 1)
    space.rule("low", x + y <= 2)
    space.rule("high", x * y >= 3)
    called = []
    with pytest.raises(InfeasibleSpaceError, match=r"'low', 'high'"):
        mc.minimize(lambda c: called.append(c) or 0.0, space, 5, progress=False)
    assert not called


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_written_programs_can_be_read_back(tmp_path, suffix):
    space = conv_net()
    path = getattr(space, f"to_{suffix}")(tmp_path / "space")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    program = compiled(space).program
    assert (highs.getNumCol(), highs.getNumRow()) == (program.n_columns, program.matrix.shape[0])
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal


UNWRITABLE = {
    "": "has an empty name; give another file, such as 'space.lp'",
    ".": "has an empty name",
    "/nonexistent/x.lp": "cannot be written to '/nonexistent/x.lp': No such file or directory; give another file",
    "taken.lp": "cannot be written to 'taken.lp': Is a directory",
    "taken": "Is a directory",
    "file/x.lp": "Not a directory",
    "dangling.lp": "cannot be written to 'dangling.lp': No such file or directory",
    "circle/x.lp": "cannot be written to 'circle/x.lp'",
    "nul\0.lp": "embedded null byte",
    "x" * 300 + ".lp": "File name too long",
}


def test_a_path_that_cannot_be_written_to_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.lp").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "dangling.lp").symlink_to("nowhere/x.lp")
    (tmp_path / "circle").symlink_to("circle")
    space = discrete()
    for path, message in UNWRITABLE.items():
        with pytest.raises(SolverError) as refusal:
            space.to_lp(path)
        assert message in str(refusal.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["circle", "dangling.lp", "file", "taken.lp"]


def test_a_path_without_write_permission_or_of_a_wrong_type_is_refused(tmp_path, monkeypatch):
    def refuse(path, text):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(SolverError, match=r"space.mps': Permission denied; give another file"):
        conv_net().to_mps(tmp_path / "space.mps")
    with pytest.raises(TypeError, match=r"the path of a program is a str or a Path, such as 'space.lp', got None"):
        conv_net().to_lp(None)


def test_a_program_with_products_of_reals_is_not_written(tmp_path: Path) -> None:
    space = mc.Space("area")
    x, y = space.real("x", 0, 1), space.real("y", 0, 1)
    space.rule("area", x * y >= 0.5)
    with pytest.raises(SolverError, match="its rules multiply reals"):
        space.to_mps(tmp_path / "area.mps")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("write_model_file=/nonexistent/x.lp", "the folder /nonexistent does not exist; create it"),
        ("solution_file=/", "names a folder; give a file"),
        ("read_solution_file=/nonexistent.sol", "does not exist or cannot be read"),
    ],
)
def test_files_in_solver_options_are_checked_before_the_solver_runs(option, message):
    """HiGHS ends the process if it cannot open a file."""
    with pytest.raises(SolverError, match=message) as refusal:
        conv_net().optimum(0, solver=f"highs {option} write_model_to_file=on")
    assert option in str(refusal.value)


@pytest.mark.parametrize(("optimizer", "distance"), [("random", 3), *((name, 1) for name in installed("mivabo"))])
def test_a_batch_is_distinct_and_keeps_its_minimum_distance(optimizer, distance):
    space = conv_net()
    study = mc.Study(space, optimizer, seed=1)
    for _ in range(2):
        batch = study.ask(4, distance=distance)
        assert len(batch) == 4
        levels = [compiled(space).program.encode(t.config) for t in batch]
        for a, b in itertools.combinations(levels, 2):
            assert int(np.sum(a != b)) >= distance
        for trial in batch:
            study.tell(trial, loss(trial.config))
    assert len(study.trials) == 8


def test_a_batch_is_limited_to_the_remaining_configurations():
    study = mc.Study(discrete(), seed=0)
    assert len(study.ask(60)) == 55
    with pytest.raises(SpaceExhaustedError):
        study.ask(2)
    study = mc.Study(discrete(), seed=0)
    with pytest.raises(SpaceExhaustedError, match="at least 6"):
        study.ask(3, distance=6)


@pytest.mark.parametrize("seed", range(2))
def test_nearest_keeps_levels_beside_extreme_ranges_of_numbers(seed: int) -> None:
    """A categorical and an ordinal that need not change keep their values beside tiny, huge and one-valued ranges."""
    rng = np.random.default_rng(100 + seed)
    tiny, huge = (float(s) for s in rng.choice([1e-12, 1e-9, 1e-8]) * np.array([1.0, 1e17]))
    space = mc.Space(expand_limit=0)
    kind, size = space.categorical("kind", ["a", "b", "c"]), space.ordinal("size", [1, 2, 3, 4])
    x, y = space.real("x", -tiny, tiny), space.real("y", 0, huge)
    one = space.integer("one", 3, 3)
    k = space.integer("k", 0, 4)
    space.rule("size and k", size + k + one <= 6)
    space.rule("not a", x + 2 * kind["a"] <= 1.5)
    space.rule("beside", y / huge + kind["b"] <= 1.2)
    for _ in range(4):
        given = {
            "kind": str(rng.choice(["a", "b", "c"])),
            "size": int(rng.integers(1, 5)),
            "x": float(rng.uniform(-tiny, tiny)),
            "y": float(rng.uniform(0, huge)),
            "one": int(rng.integers(2, 5)),
            "k": int(rng.integers(0, 5)),
        }
        found = space.nearest(given)
        best = min(
            (given["kind"] != c)
            + abs(given["size"] - s) / 3
            + abs(given["k"] - i) / 4
            + max(0.0, given["y"] / huge + (c == "b") - 1.2)
            for c, s, i in itertools.product("bc", range(1, 5), range(5))
            if s + i + 3 <= 6
        )
        distance = (
            (given["kind"] != found["kind"])
            + abs(given["size"] - found["size"]) / 3
            + abs(given["k"] - found["k"]) / 4
            + abs(given["y"] - found["y"]) / huge
        )
        assert space.is_legal(found)
        assert distance == pytest.approx(best, abs=1e-5)
        assert (found["one"], found["x"]) == (3, given["x"])


def test_a_number_far_outside_of_its_range_counts_as_the_nearest_value() -> None:
    space = mc.Space()
    x, kind = space.real("x", 0, 1), space.categorical("kind", ["a", "b"])
    space.rule("r", x + kind["a"] <= 1.25)
    found = space.nearest({"x": 1e30, "kind": "a"})
    assert found == {"x": pytest.approx(0.25), "kind": "a"}
    assert space.nearest({"x": -1e30, "kind": "a"}) == {"x": 0.0, "kind": "a"}


@pytest.mark.parametrize("factor", [1.0, -1.0, 1e6, -1e6])
def test_levels_far_below_or_above_all_numbers_count_as_the_lowest_or_highest(factor: float) -> None:
    space = mc.Space()
    threads = space.integer("threads", 1, 4)
    space.ordinal("size", [1, 2, 4, 8])
    space.real("x", 0, 1, step=0.25)
    space.rule("cap", threads <= 3)
    high = {"threads": 3, "size": 8, "x": 1.0}
    assert space.nearest(dict.fromkeys(high, 64 * factor)) == (
        high if factor > 0 else {"threads": 1, "size": 1, "x": 0.0}
    )


def test_whether_a_configuration_is_legal_is_asked_without_a_search_for_the_conflict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space = mc.Space()
    a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
    t = space.auxiliary("t", 0, 9)
    space.rule("above", t >= a)
    space.rule("below", t <= b)
    given = [{"a": 7, "b": 3}, {"a": 3, "b": 7}]
    assert [v.name for v in space.validate(given[0])] == ["above"]
    monkeypatch.setattr("mipcash.space.compiled.conflicting", None)
    assert [space.is_legal(config) for config in given] == [False, True]
