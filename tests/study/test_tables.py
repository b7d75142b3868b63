"""Tables of known evaluations: cells that are read, rows that are refused, and tables that a run has written."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mipcash as mc
from mipcash.errors import ConfigurationError

ORDER = ("salt", "egg", "oil")


def kitchen(glazes: tuple[Any, ...] = (True, "True", None, 2)) -> mc.Space:
    space = mc.Space("kitchen")
    heat = space.integer("heat", 100, 250)
    fan = space.categorical("fan", ["on", "off", None])
    space.real("speed", 0.5, 2.0, when=fan["on"])
    space.categorical("glaze", glazes, when=fan["off"])
    for name in ORDER:
        space.categorical(name, ["much", "little"])
    space.ordering("order", list(ORDER))
    space.rule("gentle", heat <= 200 + 50 * fan["on"])
    return space


REST = dict.fromkeys(ORDER, "much") | {"order": ("egg", "salt", "oil")}


def cells(**given: object) -> dict[str, object]:
    return {"heat": 180, "fan": "on", "speed": 1.0, "loss": 0.5} | REST | {"order": "egg > salt > oil"} | given


@pytest.mark.parametrize(
    ("row", "config"),
    [
        (cells(heat="180", speed="1"), {"heat": 180, "fan": "on", "speed": 1.0}),
        (cells(heat=180.0, cook="Ann"), {"heat": 180, "fan": "on", "speed": 1.0}),
        (cells(fan=None, speed=None), {"heat": 180, "fan": None}),
        (cells(fan="", speed=float("nan")), {"heat": 180, "fan": None}),
        (cells(fan="off", speed="", glaze=""), {"heat": 180, "fan": "off", "glaze": None}),
        (cells(fan="off", speed="", glaze="True"), {"heat": 180, "fan": "off", "glaze": "True"}),
        (cells(fan="off", speed="", glaze=True), {"heat": 180, "fan": "off", "glaze": True}),
        (cells(fan="off", speed="", glaze="2.0"), {"heat": 180, "fan": "off", "glaze": 2}),
    ],
)
def test_cells_are_read_by_their_domains(row: dict[str, object], config: dict[str, object]) -> None:
    (read, outcome), *rest = mc.read_trials([row], kitchen())
    assert read == {**config, **REST}
    assert {n: type(v) for n, v in read.items()} == {n: type(v) for n, v in {**config, **REST}.items()}
    assert (outcome, rest) == ({"loss": 0.5}, [])


def test_all_unusable_rows_are_listed_with_their_cause() -> None:
    table = [cells(), cells(fan=None, speed=None, heat=230), cells(speed="quick"), cells(loss=""), cells(loss="good")]
    with pytest.raises(ConfigurationError) as refused:
        mc.read_trials(table, kitchen())
    text = str(refused.value)
    assert text.startswith("4 of 5 rows")
    assert "row 2: rule 'gentle'" in text
    assert "row 3: " in text
    assert "'quick'" in text
    assert "row 4: its loss is empty" in text
    assert "row 5: loss is 'good', which is no number" in text
    with pytest.warns(UserWarning, match="They are left out"):
        assert len(mc.read_trials(table, kitchen(), illegal="skip")) == 1
    with pytest.raises(ValueError, match="no column 'cost'; its columns are"):
        mc.read_trials(table, kitchen(), loss="cost")
    with pytest.raises(TypeError, match="a table is a data frame"):
        mc.read_trials(3, kitchen())


@pytest.mark.parametrize("kind", ["rows", "frame", "csv", "journal"])
def test_a_table_written_by_a_run_is_read_back(kind: str, tmp_path: Path) -> None:
    texts = kind == "csv"  # a cell of a file is no text and no truth value
    glazes = (True, "matt", None, 2) if texts else (True, "True", None, 2)
    space, path = kitchen(glazes), tmp_path / "old.db"

    def bake(config: dict[str, object]) -> dict[str, float]:
        if config["fan"] is None:
            raise mc.Failed("cold")
        return {"loss": abs(config["heat"] - 170) / 100, "smoke": config["heat"] / 10}

    result = mc.minimize(bake, space, 12, limits={"smoke": 20}, optimizer="random", storage=path, progress=False)
    frame = pd.DataFrame(result.to_rows())
    frame.to_csv(tmp_path / "old.csv", index=False)
    table = {"rows": result.to_rows(), "frame": frame, "csv": tmp_path / "old.csv", "journal": path}[kind]
    read = mc.read_trials(table, space)
    assert [config for config, _ in read] == [trial.config for trial in result.history]
    for (_, outcome), trial in zip(read, result.history, strict=True):
        assert str(outcome) == trial.message if trial.failed else outcome == {"loss": trial.loss, **trial.values}
    again = mc.minimize(bake, kitchen(glazes), 2, limits={"smoke": 20}, optimizer="random", known=read, progress=False)
    assert (again.n_known, len(again.history)) == (12, 14)


def test_a_table_is_read_into_a_changed_space() -> None:
    table = [{"config.x": 0.25, "config.k": "a", "loss": 1.0}, {"config.x": 0.75, "config.k": "gone", "loss": 2.0}]
    space = mc.Space("wider")
    x, k = space.real("x", 0.0, 10.0), space.categorical("k", ["a", "b"])
    space.integer("depth", 1, 9, when=k["a"])
    space.rule("new", x <= 9)
    with pytest.warns(UserWarning, match="row 2: .*'gone'"):
        known = mc.read_trials(table, space, fill={"depth": 3}, illegal="skip")
    assert known == [({"x": 0.25, "k": "a", "depth": 3}, {"loss": 1.0})]
    table[1]["config.k"] = "b"  # the new parameter is inactive and not filled in
    assert mc.read_trials(table, space, fill={"depth": 3})[1][0] == {"x": 0.75, "k": "b"}


def test_orders_are_read_in_several_notations() -> None:
    for order in (
        "egg > salt > oil",
        "egg,salt,oil",
        '["egg", "salt", "oil"]',
        ("egg", "salt", "oil"),
        "('egg', 'salt', 'oil')",
    ):
        assert mc.read_trials([cells(order=order)], kitchen())[0][0]["order"] == ("egg", "salt", "oil")


def test_a_frame_of_polars_is_read() -> None:
    class Frame:
        """Frame with the methods of polars, whose ``to_dict`` takes no argument."""

        columns = ("x", "loss")

        def to_dict(self) -> dict[str, list[float]]:
            raise AssertionError

        def to_dicts(self) -> list[dict[str, float]]:
            return [{"x": 0.5, "loss": 1.0}]

    space = mc.Space("one")
    space.real("x", 0, 1)
    assert mc.read_trials(Frame(), space) == [({"x": 0.5}, {"loss": 1.0})]


def test_a_table_may_hold_several_outputs() -> None:
    space = mc.Space("two")
    space.real("x", 0, 1)
    table = [
        {"x": 0.5, "mass": "3", "cost": 2.0, "time": None, "score": 0.1, "status": "done"},
        {"x": 0.1, "status": "pending"},
    ]
    with pytest.warns(UserWarning, match="1 row left out, with the status pending, or pruned"):
        assert mc.read_trials(table, space, loss=None, outputs=["mass", "cost", "time"]) == [
            ({"x": 0.5}, {"mass": 3, "cost": 2.0})
        ]
    assert mc.read_trials(table[:1], space, loss="score") == [({"x": 0.5}, {"loss": 0.1})]


def test_a_parameter_that_is_gone_is_named_and_one_given_twice_is_refused() -> None:
    space = mc.Space("less")
    space.real("x", 0, 1)
    row = {"config.x": 0.5, "config.k": 3, "loss": 1.0}
    with pytest.warns(UserWarning, match=r"space 'less' lacks parameters of the table: config.k are ignored"):
        assert mc.read_trials([row], space) == [({"x": 0.5}, {"loss": 1.0})]
    with pytest.raises(ValueError, match=r"the table has the columns 'x' and 'config\.x'"):
        mc.read_trials([{**row, "x": 0.1}], space)


@pytest.mark.parametrize("name", ["sheet.tsv", "sheet.txt", "sheet.csv"])
def test_spreadsheets_write_booleans_in_capitals_and_separate_by_tabs(tmp_path: Path, name: str) -> None:
    space = mc.Space("flag")
    space.categorical("on", [True, False])
    path = tmp_path / name
    path.write_text("on\tloss\nTRUE\t1\nfalse\t2\n", encoding="utf-8")
    assert [config["on"] for config, _ in mc.read_trials(path, space)] == [True, False]


def oven() -> mc.Space:
    space = mc.Space("oven")
    space.integer("heat", 100, 250)
    fan = space.categorical("fan", ["on", None])
    space.real("speed", 0.5, 2.0, when=fan["on"])
    return space


def bake(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": abs(config["heat"] - 170) / 100, "smoke": config["heat"] / 10}


def test_a_misspelt_column_is_refused_and_not_read_as_an_empty_one() -> None:
    with pytest.raises(
        ValueError, match=r"no column 'fan'; its columns are 'heat', 'Fan', 'loss'.*fill=\{'fan': ...\}"
    ):
        mc.read_trials([{"heat": 180, "Fan": "on", "loss": 1.0}], oven())
    assert mc.read_trials([{"heat": 180, "loss": 1.0}], oven(), fill={"fan": None}) == [
        ({"heat": 180, "fan": None}, {"loss": 1.0})
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_files_as_people_have_them(delimiter: str, tmp_path: Path) -> None:
    rows = ["heat,fan,speed,loss", "180,on,1.5,0.4", "190,NA,NaN,0.3", "200,None,,0.2"]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows).replace(",", delimiter), encoding="utf-8-sig")
    read = [({"heat": 180, "fan": "on", "speed": 1.5}, {"loss": 0.4})]
    read += [({"heat": heat, "fan": None}, {"loss": loss}) for heat, loss in ((190, 0.3), (200, 0.2))]
    assert mc.read_trials(path, oven()) == read
    path.write_bytes("heat,fan,loss,köchin\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"runs.csv is not encoded in UTF-8 .*pandas.read_csv\(path, encoding=...\)"):
        mc.read_trials(path, oven())


def test_values_without_a_json_type_are_read_from_a_journal(tmp_path: Path) -> None:
    Fan = enum.Enum("Fan", ["ON", "OFF"])

    def network() -> mc.Space:
        space = mc.Space("network")
        space.categorical("layers", [(64,), (64, 32)])
        space.categorical("since", [date(2020, 1, 1), date(2021, 1, 1)])
        space.categorical("how", list(Fan))
        return space

    path = tmp_path / "old.db"
    result = mc.minimize(lambda c: float(len(c["layers"])), network(), 6, storage=path, progress=False)
    assert mc.read_trials(path, network()) == [(t.config, {"loss": t.loss}) for t in result.history]


def test_rows_and_columns_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("heat,fan,loss\n180,None,0.4,\n")
    assert len(mc.read_trials(path, oven())) == 1
    path.write_text("heat,fan,loss\n180,on,0.4,7\n")
    with pytest.raises(ValueError, match=r"row 1 of .*runs.csv has more cells than the header has columns: '7'"):
        mc.read_trials(path, oven())
    path.write_text("")
    with pytest.raises(ValueError, match=r"runs.csv is empty; its first line must name the columns"):
        mc.read_trials(path, oven())
    path.write_text("heat,fan,loss,loss\n180,on,0.4,0.5\n")
    twice = pd.DataFrame([[180, "on", 0.4, 0.5]], columns=["heat", "fan", "loss", "loss"])
    for table in (path, twice):
        with pytest.raises(ValueError, match="has the column 'loss' twice"):
            mc.read_trials(table, oven())
    with pytest.raises(ValueError, match="fill= names 'fun', and space 'oven' has no such parameter"):
        mc.read_trials([{"heat": 180, "fan": "on", "loss": 0.4}], oven(), fill={"fun": "on"})


def test_a_text_of_an_empty_cell_may_be_a_level() -> None:
    space = mc.Space("countries")
    space.categorical("country", ["NA", "DE", None])
    table = [{"country": c, "loss": 1.0} for c in ("NA", "", "nan")]
    assert [c["country"] for c, _ in mc.read_trials(table, space)] == ["NA", None, None]


def test_pruned_trials_are_left_out_of_a_table() -> None:
    space = oven()

    def folds(config: dict[str, Any]) -> Iterator[float]:
        for _ in range(4):
            yield bake(config)["loss"]

    rows = mc.minimize(folds, space, 20, optimizer="random", pruning=True, progress=False).to_rows()
    pruned = [row["pruned"] for row in rows]
    assert any(pruned)
    assert len(mc.read_trials(rows, space)) == pruned.count(False)
    assert len(mc.read_trials([{k: str(v) for k, v in rows[pruned.index(True)].items()}], space)) == 0


@pytest.mark.parametrize("kind", ["frame", "csv", "rows"])
def test_a_table_is_known_without_being_read_first(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"heat": [180, 190], "fan": ["on", None], "speed": [1.5, None], "loss": [0.4, 0.3], "smoke": [9, 30]}
    )
    frame.to_csv(tmp_path / "runs.csv", index=False)
    table: Any = {"frame": frame, "csv": tmp_path / "runs.csv", "rows": frame.to_dict("records")}[kind]
    result = mc.minimize(bake, oven(), 1, known=table, limits={"smoke": 20}, optimizer="random", progress=False)
    assert [(t.loss, t.values) for t in result.history[:2]] == [(0.4, {"smoke": 9.0}), (0.3, {"smoke": 30.0})]
    with mc.Study(oven(), "random", known=table) as study:
        study.add_missing(table)
        assert [t.loss for t in study.trials] == [0.4, 0.3]
        assert [t.number for t in study.add(table)] == [2, 3]
    with pytest.raises(ValueError, match="no column 'loss'"):
        mc.Study(oven(), "random", known=[{"heat": 180, "fan": None}])
    both = mc.minimize(bake, oven(), 1, known=table, direction=["loss", "smoke"], optimizer="random", progress=False)
    assert both.n_known == 2
    with mc.Study(oven(), known=[{"heat": 180, "fan": None, "loss": 0.4, "variance": 0.5}]) as study:
        assert study.trials[0].values == {"variance": 0.5}
    assert mc.read_trials([{"heat": "18_0", "fan": "on", "speed": 1.5, "loss": 1}], oven(), illegal="skip") == []


def test_a_journal_with_another_direction_is_refused(tmp_path: Path) -> None:
    given = {"optimizer": "random", "storage": tmp_path / "run.db", "progress": False}
    mc.minimize(bake, oven(), 2, direction="maximize", **given)
    with pytest.raises(ValueError, match="has 'loss' to maximize, and this study has it to minimize"):
        mc.Study(oven(), "random", known=given["storage"])
    assert mc.Study(oven(), "random", direction="maximize", known=given["storage"]).result.n_known == 2


def test_columns_of_parameters_are_no_marks_of_a_run(tmp_path: Path) -> None:
    space = mc.Space("tree")
    space.categorical("pruned", [True, False])
    space.categorical("status", ["pending", "failed"])
    table = [{"pruned": True, "status": "pending", "loss": 1.0}, {"pruned": False, "status": "failed", "loss": 2.0}]
    assert [outcome["loss"] for _, outcome in mc.read_trials(table, space)] == [1.0, 2.0]
    path = tmp_path / "sheet.csv"
    path.write_text(
        'heat;fan;speed;loss;pruned;note\n180;on;1.5;0.4;TRUE;x\n190;;;0.3;FALSE;"a\u2028b\nc"\n', encoding="utf-8"
    )
    with pytest.warns(UserWarning, match="1 row left out"):
        assert mc.read_trials(path, oven()) == [({"heat": 190, "fan": None}, {"loss": 0.3})]
    with mc.Study(oven(), "random") as study, pytest.raises(ValueError, match="illegal= is for one configuration"):
        study.add(path, illegal="learn")


def test_outputs_of_failures_are_read_back() -> None:
    space = mc.Space("box")
    space.integer("a", 0, 1)
    failing = lambda config: mc.Failed("no", values={"ms": 8.0})  # noqa: E731
    result = mc.minimize(failing, space, 2, limits={"ms": 4.0}, optimizer="random", progress=False)
    for _, outcome in mc.read_trials(result.to_rows(), space):
        assert (outcome.message, outcome.values) == ("no", {"ms": 8.0})


def test_outputs_that_failed_are_read_back_as_violations(tmp_path: Path) -> None:
    space = mc.Space("s")
    space.real("x", 0, 1)

    def objective(config: dict[str, float]) -> dict[str, Any]:
        return {"loss": config["x"], "ms": float("nan") if config["x"] < 0.5 else 1.0, "mb": mc.Failed("full")}

    options: Any = {"limits": {"ms": 2.0, "mb": 1.0}, "optimizer": "random", "progress": False}
    result = mc.minimize(objective, space, 9, storage=tmp_path / "run.db", **options)
    outputs = [{n: o.status for n, o in t.outcome.outputs.items()} for t in result.history]
    for known in (result.to_rows(), tmp_path / "run.db"):
        again = mc.minimize(objective, space, 1, known=known, **options)
        assert [{n: o.status for n, o in t.outcome.outputs.items()} for t in again.history[:9]] == outputs


def test_parameters_may_have_the_names_of_columns(tmp_path: Path) -> None:
    space = mc.Space("names")
    loss, status = space.categorical("loss", ["hinge", "log"]), space.categorical("status", ["done", "failed"])
    space.real("duration", 0, 1, when=loss["log"] & status["done"])
    result = mc.minimize(lambda c: len(c), space, 6, optimizer="random", storage=tmp_path / "run.db", progress=False)
    for table in (result.to_rows(), result.trials_dataframe(), tmp_path / "run.db"):
        assert mc.read_trials(table, space) == [(t.config, {"loss": t.loss}) for t in result.history]


def test_filled_values_are_those_that_the_table_lacks_and_that_are_active() -> None:
    space = mc.Space("nested")
    a = space.categorical("a", ["u", "v"])
    b = space.categorical("b", ["m", "n"], when=a["v"])
    space.integer("c", 0, 3, when=b["n"])
    space.categorical("act", ["relu", None])
    rows = [{"a": "u", "act": None, "loss": 1.0}, {"a": "v", "act": "relu", "loss": 2.0}]
    found = [c for c, _ in mc.read_trials(rows, space, fill={"b": "n", "c": 2, "act": "relu"})]
    assert found == [{"a": "u", "act": None}, {"a": "v", "b": "n", "c": 2, "act": "relu"}]
    with pytest.raises(ConfigurationError, match="parameter 'c': 9 is outside"):
        mc.read_trials(rows[1:], space, fill={"b": "n", "c": 9})


def test_a_cell_of_a_file_that_may_be_two_values_is_refused(tmp_path: Path) -> None:
    space = mc.Space("levels")
    space.categorical("v", [1, "1", True])
    (tmp_path / "runs.csv").write_text("v,loss\n1,0.5\n")
    with pytest.raises(ValueError, match="the cell '1' of parameter 'v' may be any of 1, '1'"):
        mc.read_trials(tmp_path / "runs.csv", space)
    assert mc.read_trials([{"v": "1", "loss": 0.5}], space) == [({"v": "1"}, {"loss": 0.5})]


def test_the_loss_has_one_column() -> None:
    space = mc.Space("one")
    space.integer("a", 0, 9)
    rows = [{"a": 1, "loss": 5.0, "score": 7.0}]
    with pytest.raises(ValueError, match="outputs= names 'loss'"):
        mc.read_trials(rows, space, loss="score", outputs=["loss"])
    with pytest.raises(TypeError, match=r"write \['ms'\]"):
        mc.read_trials(rows, space, outputs="ms")
