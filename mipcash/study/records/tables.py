"""Evaluations from tables: a CSV file, a data frame, the rows of ``Result.to_rows()``, or the journal of another run.

A cell is read by the domain of its parameter: ``3``, ``3.0`` and ``"3"`` are the same integer, and ``"svm > knn"`` is an order. An
empty cell (``None``, nan, an empty text, ``NA`` ...) is an inactive parameter; where the parameter is active, it is the level
``None``.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mipcash.display import counted
from mipcash.errors import ConfigurationError, warn
from mipcash.modelling.domains import (
    Categorical,
    Configuration,
    Integer,
    Ordinal,
    ParameterDomain,
    Permutation,
    Real,
    Value,
    is_number,
    level_of,
)
from mipcash.modelling.validation import check
from mipcash.optimizers.objectives import Objectives
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, PENDING, VARIANCE
from mipcash.space.compiled import compiled
from mipcash.study.records.encoding import plain
from mipcash.study.records.given import REFUSE
from mipcash.study.records.trials import readable_trial
from mipcash.study.trial import COLUMNS, Failed, flat_row
from mipcash.text import shown

NEAR = 1e-9
"""Relative difference up to which two numbers of a list are equal: 0.1 + 2 * 0.1 and 0.3 are."""

if TYPE_CHECKING:
    from mipcash.space.space import Space

SKIP = "skip"
LISTED = 100
"""Largest number of rows that a message lists."""
EMPTY = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "<NA>")
"""Texts of an empty cell, unless they are a value of the parameter."""
DELIMITERS, TEXTS = ",;\t", (".csv", ".tsv", ".txt")
"""Delimiters of a text file, of which it has one, and its suffixes."""


def read_trials(
    table: Any,
    space: Space,
    *,
    loss: str | None = LOSS,
    outputs: Sequence[str] = (),
    fill: Mapping[str, Value] | None = None,
    illegal: str = REFUSE,
) -> list[tuple[Configuration, Any]]:
    """Read evaluations from a table, for ``known=`` of ``mipcash.minimize`` and ``mipcash.Study``.

    Columns are named after parameters, or ``config.<name>`` as in ``Result.to_rows()``; other columns are ignored. A row whose
    ``status`` is pending is left out, and so is one that was ``pruned``, because its loss is an estimate. One whose status is
    failed becomes a failure. nan in a row that is done is an output that failed; in a data frame or a text file it is a missing
    one. A warning names columns ``config.<name>`` of parameters that are gone.

    Args:
        table: a data frame, a list of dicts, the path of a ``.csv``, ``.tsv`` or ``.txt`` file (UTF-8, separated by comma,
            semicolon or tab), or the path or address of a journal.
        space: the space, which may differ from the one that the table was made with.
        loss: the column of the loss; None: none, as the objectives are among ``outputs``.
        outputs: columns of further outputs; those named ``values.<name>`` are always read.
        fill: values of parameters that the table lacks, where they are active. An empty cell of a parameter that has the value
            None is None.
        illegal: treatment of rows that have no legal configuration or no loss: ``refuse``, or ``skip`` with a warning.

    Returns:
        Pairs of a configuration and its outcome, in the order of the rows.

    Raises:
        ConfigurationError: rows are refused; the message lists them with the rules that they violate.
        TypeError: the table is none of these.
        ValueError: it has no column of the loss, of an output or of a parameter that is always active, a column twice, or a row
            with more cells than columns; ``fill`` names no parameter, or ``illegal`` is none of the above.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("oven")
        >>> heat, fan = space.integer("heat", 100, 250), space.categorical("fan", ["on", None])
        >>> table = [{"heat": "180", "fan": "on", "loss": 0.4, "cook": "Ann"}, {"heat": 200.0, "fan": "", "loss": "0.3"}]
        >>> mc.read_trials(table, space)
        [({'heat': 180, 'fan': 'on'}, {'loss': 0.4}), ({'heat': 200, 'fan': None}, {'loss': 0.3})]
    """
    if illegal not in (REFUSE, SKIP):
        raise ValueError(f"illegal must be {REFUSE!r} or {SKIP!r}, got {shown(illegal)}")
    if unknown := [n for n in fill or () if n not in space.parameters]:
        raise ValueError(f"fill= names {unknown[0]!r}, and space {space.name!r} has no such parameter")
    if isinstance(outputs, str):
        raise TypeError(f"outputs= is a list of names; write [{outputs!r}]")
    if loss not in (None, LOSS) and LOSS in outputs:
        raise ValueError(f"outputs= names 'loss', which an outcome has from loss={loss!r}; rename that column")
    rows = _rows(table, space)
    wanted = [*([] if loss is None else [loss]), *outputs]
    columns = dict.fromkeys(name for row in rows for name in row)
    if rows and (missing := [n for n in wanted if n not in columns and f"values.{n}" not in columns]):
        raise ValueError(
            f"{_without(missing, columns)}. Name the columns: mc.read_trials(table, space, loss=..., outputs=[...]), of "
            "several objectives loss=None"
        )
    conditions = compiled(space).declaration.conditions  # compiled looks at the live model at every call
    always = [n for n in space.parameters if n not in conditions and n not in (fill or {})]
    if rows and (missing := [n for n in always if n not in columns and f"config.{n}" not in columns]):
        values = ", ".join(f"{n!r}: ..." for n in missing)
        raise ValueError(
            f"{_without(missing, columns)}. Name the columns after the parameters, or give the value that all rows have: "
            f"fill={{{values}}}"
        )
    if twice := [n for n in space.parameters if n in columns and f"config.{n}" in columns and n not in COLUMNS]:
        raise ValueError(f"the table has the columns {twice[0]!r} and 'config.{twice[0]}'; leave one of them out")
    theirs = [n for n in columns if n.startswith("config.")]
    if gone := [n for n in theirs if n.removeprefix("config.") not in space.parameters]:
        warn(f"space {space.name!r} lacks parameters of the table: {', '.join(gone)} are ignored")
    found, refused, left = list[tuple[Configuration, Any]](), list[str](), 0
    for k, row in enumerate(rows, start=1):
        marks = {
            name: str(row.get(name, "")).lower()
            for name in ("status", "pruned")
            if theirs or name not in space.parameters
        }
        if marks.get("status") == PENDING or marks.get("pruned") == "true":
            left += 1
            continue
        config = _configuration(space, row, fill or {}, COLUMNS if theirs else ())
        outcome, problem = _outcome(row, loss, wanted, marks.get("status", ""))
        problem = "; ".join(map(str, space.validate(config))) or problem
        if problem:
            refused.append(f"row {k}: {problem}")
        else:
            found.append((config, outcome))
    if left and not theirs:
        warn(f"{counted(left, 'row')} left out, with the status pending, or pruned")
    if refused:
        text = "\n".join(refused[:LISTED] + (["..."] if len(refused) > LISTED else []))
        text = f"{len(refused)} of {len(rows)} rows have no legal configuration in space {space.name!r}, or no loss:\n{text}"
        if illegal != SKIP:
            raise ConfigurationError(f"{text}\nCorrect them, or leave them out: illegal='skip'")
        warn(f"{text}\nThey are left out")
    return found


def _without(missing: Sequence[str], columns: Mapping[str, None]) -> str:
    return f"the table has no column {', '.join(map(repr, missing))}; its columns are {', '.join(map(repr, columns))}"


def is_table(given: Any) -> bool:
    """Return True for a data frame, a path, or a list of dicts."""
    if isinstance(given, (str, os.PathLike)) or (hasattr(given, "to_dict") and hasattr(given, "columns")):
        return True
    return isinstance(given, Sequence) and bool(given) and all(isinstance(row, Mapping) for row in given)


def pairs_of(given: Any, space: Space, objectives: Objectives, others: Iterable[str]) -> Any:
    """Return the pairs of a configuration and its outcome of a table; what is no table is returned unchanged.

    Args:
        objectives: columns that the table must have.
        others: outputs whose columns it may have.

    Raises:
        ConfigurationError, ValueError: as ``read_trials``, or a journal has an objective with the other direction.
    """
    if not is_table(given):
        return given
    rows = _rows(given, space, objectives)
    there = {name for row in rows for name in row}
    others = (*others, *([] if VARIANCE in space.parameters else [VARIANCE]))
    outputs = dict.fromkeys([*(objectives.names if objectives.several else ()), *(n for n in others if n in there)])
    return read_trials(rows, space, loss=None if objectives.several else LOSS, outputs=list(outputs))


class _Texts(dict[str, Any]):
    """A row of a CSV file, whose cells are texts."""


def _rows(table: Any, space: Space, objectives: Objectives | None = None) -> list[Mapping[str, Any]]:
    if isinstance(table, (str, os.PathLike)):
        path = Path(table)
        if path.suffix.lower() in TEXTS:
            return _of_csv(path)
        if path.suffix.lower() in (".json", ".xlsx", ".xls", ".parquet"):
            raise TypeError(f"{path} is no table that is read here; read it by pandas, and give the data frame")
        return _of_journal(table, space, objectives)
    if hasattr(table, "to_dict") and hasattr(table, "columns"):
        _check_distinct([str(name) for name in table.columns], "the data frame")
        # a frame has nan for what is missing
        return [
            {str(n): None if isinstance(v, float) and v != v else v for n, v in row.items()} for row in _records(table)
        ]
    if isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        return list(table)
    raise TypeError(
        f"a table is a data frame, a list of dicts, or the path of a CSV file or a journal; got {shown(table)}"
    )


def _records(frame: Any) -> Iterable[Mapping[Any, Any]]:
    """Return the rows of a data frame of polars or pandas."""
    found: Iterable[Mapping[Any, Any]] = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    return found


def _of_csv(path: Path) -> list[Mapping[str, Any]]:
    """Return the rows of a CSV file, with the delimiter that its first line has most often."""
    try:
        text = path.read_bytes().decode("utf-8-sig").lstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not encoded in UTF-8 ({error}); read it by pandas.read_csv(path, encoding=...), and give the data frame"
        ) from error
    first = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(DELIMITERS, key=first.count))
    rows: list[Any] = list(reader)
    if not reader.fieldnames:
        raise ValueError(f"{path} is empty; its first line must name the columns")
    _check_distinct(reader.fieldnames, str(path))
    for k, row in enumerate(rows, start=1):
        if any(beyond := row.pop(None, None) or ()):
            raise ValueError(
                f"row {k} of {path} has more cells than the header has columns: {', '.join(map(repr, beyond))}"
            )
    return [_Texts(row) for row in rows]


def _check_distinct(columns: Sequence[str], where: str) -> None:
    """Raise ValueError if a column with a name occurs twice."""
    if twice := [n for k, n in enumerate(columns) if n and n in columns[:k]]:
        raise ValueError(f"{where} has the column {twice[0]!r} twice; rename one of them, or leave it out")


def _of_journal(where: str | os.PathLike[str], space: Space, objectives: Objectives | None) -> list[Mapping[str, Any]]:
    """Return the trials of a journal, after comparing its directions with those of ``objectives``.

    Where ``space`` lacks the journal's fidelity, trials at a low one are left out.
    """
    from mipcash.study.storage.registry import read_study

    record, rows = read_study(where)
    then, now = ({} if each is None else each.directions for each in (record.objectives, objectives))
    named = now if objectives is None or not objectives.several else objectives.names
    for name in (n for n in named if then.get(n, now[n]) != now[n]):
        raise ValueError(
            f"the journal {where} has {name!r} to {then[name]}, and this study has it to {now[name]}; give direction= as there, or "
            "read it by mc.read_trials, and negate the values"
        )
    trials, fidelity = [readable_trial(row, record.objectives) for row in rows], record.objectives.fidelity
    if fidelity is not None and fidelity.label not in space.parameters:
        whole = [t for t in trials if t.at_full_fidelity]
        warn(
            f"{len(trials) - len(whole)} trials of {where} at a low fidelity are left out, since space {space.name!r} has no "
            f"{fidelity.label!r}"
        )
        trials = whole
    return [flat_row(trial) for trial in trials]


def _configuration(
    space: Space, row: Mapping[str, Any], fill: Mapping[str, Value], others: Collection[str]
) -> Configuration:
    """Return the configuration of a row, in the order of the declaration. Columns named in ``others`` are no parameters."""
    config, unstated = Configuration(), list[str]()
    for name, parameter in space.parameters.items():
        cell = row.get(f"config.{name}", None if name in others else row.get(name))
        stated = f"config.{name}" in row or (name in row and name not in others)
        if not _empty(cell) or (isinstance(cell, str) and level_of(parameter.domain, cell) is not None):
            config[name] = _value(parameter.domain, cell)
            if isinstance(row, _Texts) and len(fits := _fitting(parameter.domain, cell)) > 1:
                raise ValueError(
                    f"the cell {cell!r} of parameter {name!r} may be any of {', '.join(map(repr, fits))}; give the rows as dicts"
                )
        elif stated and level_of(parameter.domain, None) is not None:
            config[name] = None
            unstated.append(name)
        elif name in fill:
            config[name] = fill[name]
            unstated.append(name)
    if not unstated:
        return config
    declaration, whole = compiled(space).declaration, config
    while inactive := {v.name for v in check(declaration, config, ()).violations} & set(unstated) & config.keys():
        config = {name: value for name, value in config.items() if name not in inactive}
    missing = {v.name for v in check(declaration, config, ()).violations}  # such a value is wrong, and not inactive
    return {name: value for name, value in whole.items() if name in config or name in missing}


def _fitting(domain: ParameterDomain, cell: str) -> list[Value]:
    """Return the values of a categorical or ordinal that a text may stand for."""
    if not isinstance(domain, (Categorical, Ordinal)):
        return []
    text, number = cell.strip(), _number(cell)
    return [v for v in domain.values if str(v) == text or (is_number(v) and number == v)]


def _empty(cell: Any) -> bool:
    if cell is None or (isinstance(cell, str) and cell.strip() in EMPTY):
        return True
    return type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _value(domain: ParameterDomain, cell: Any) -> Value:
    """Return the value of a cell; the cell itself if it is no value of the domain, so that the error message quotes it."""
    cell = cell.item() if hasattr(cell, "item") and getattr(cell, "ndim", 0) == 0 else cell
    if isinstance(domain, Permutation):
        return _order(cell)
    if isinstance(domain, (Real, Integer)):
        number = _number(cell)
        if isinstance(domain, Integer) and isinstance(number, float) and number.is_integer():
            return int(number)
        return float(number) if isinstance(domain, Real) and type(number) is int else number
    number = _number(cell)
    for stated in (cell, number):
        level = level_of(domain, stated)
        if level is not None:
            return domain.values[level]
    text = str(cell).strip()
    written = [text, *([text.capitalize()] if text.lower() in ("true", "false") else [])]  # spreadsheets write TRUE
    alike = [
        v
        for v in domain.values
        if str(v) in written
        or plain(v) == cell  # as journals write it
        or (is_number(v) and is_number(number) and math.isclose(v, number, rel_tol=NEAR))
    ]
    return alike[0] if len(alike) == 1 else cell


def _number(cell: Any) -> Any:
    if not isinstance(cell, str) or "_" in cell:  # Python reads 1_0 as 10
        return cell
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _order(cell: Any) -> Any:
    if not isinstance(cell, str):
        return tuple(cell) if isinstance(cell, Sequence) else cell
    try:
        read = json.loads(cell)
    except ValueError:
        text = cell.strip()
        read = re.split(r"\s*(?:->|[>,;])\s*", text[1:-1] if text[:1] + text[-1:] in ("()", "[]") else text)
    return tuple(str(member).strip("'\"") for member in read) if isinstance(read, list) else cell


def _outcome(row: Mapping[str, Any], loss: str | None, wanted: Sequence[str], status: str) -> tuple[Any, str]:
    """Return the outcome of a row, and what is wrong with it, if anything. A decoupled evaluation may lack the loss."""
    further = {n.removeprefix("values."): _number(cell) for n, cell in row.items() if n.startswith("values.")}
    if status == FAILED:
        values = {n: value for n, value in further.items() if is_number(value) and not _empty(value)}
        return Failed(str(row.get("message") or "failed"), values=values), ""
    cells = {name: row.get(name, row.get(f"values.{name}")) for name in wanted}
    cells |= further
    told = {n for n, v in cells.items() if not _empty(v) or (status == DONE and isinstance(v, float) and n != loss)}
    outcome = {LOSS if n == loss else n: _number(cells[n]) for n in cells if n in told}  # nan: a failed output
    if loss in wanted[1:] and loss in told:  # named as an output too, as one of several objectives is
        outcome[str(loss)] = _number(cells[str(loss)])
    if loss is not None and LOSS not in outcome and not (status == DONE and outcome):
        return None, f"its {loss} is empty"
    unread = [n for n, v in outcome.items() if isinstance(v, str)]
    if not unread:
        return outcome, ""
    hint = "; write decimals with a point" if "," in str(outcome[unread[0]]) else ""
    return outcome, f"{unread[0]} is {outcome[unread[0]]!r}, which is no number{hint}"
