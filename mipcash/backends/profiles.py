"""Solver profiles: what a TOML file says about a solver, read strictly.

Keys
    name = "gurobi"                       the flag's value
    module = "gurobipy"                   Python module by which the solver is detected
    package = "gurobipy"                  its distribution, for the version
    install = "pip install ..."           how to get it
    licence = "..."                       what the licence allows
    backend = "package.module:Class"      a backend of one's own, called with ``options=``; or instead of it:

    [pyomo]
    factory = "gurobi_persistent"         name in the solver factory
    interface = "contrib"                 pyomo.contrib.solver ("contrib") or pyomo.environ.SolverFactory ("legacy")
    persistent = true                     whether the interface keeps the solver's model between solves
    start = "partial"                     MIP starts it takes: "none", "complete" (all integers known), "partial"
    accepts = ["linear"]                  each together with integer columns: "linear", "quadratic objective",
                                          "quadratic rows"
    form = "linear"                       of the objective: "linear" (product columns) or "quadratic" (native)

    [options]                             the solver's own names
    time_limit, threads, gap, absolute_gap, seed, node_limit = "..."
    [fixed]                               options that are always set
    [fixed_quadratic]                     options that are set for a native quadratic objective
    [second]                              options of a second try, where the solver failed with those above
    [unlimited]                           values that mean "no limit": node_limit
    [size]                                of a free licence: variables, rows, quadratic_variables
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mipcash.errors import SolverError

OptionValue = bool | int | float | str

LINEAR = "linear"
QUADRATIC = "quadratic"
ACCEPTS = ("linear", "quadratic objective", "quadratic rows")
"""What a solver may accept, each in combination with integer columns."""
OPTIONS = ("time_limit", "threads", "gap", "absolute_gap", "seed", "node_limit")
"""Settings that a profile gives the solver's own names for."""
_TOP = {"name": str, "module": str, "package": str, "install": str, "licence": str}


@dataclass(frozen=True)
class SizeLimits:
    """What a free licence allows; None: no limit.

    Attributes:
        variables, rows: of the whole model.
        quadratic_variables: variables of a model that has quadratic terms.
    """

    variables: int | None = None
    rows: int | None = None
    quadratic_variables: int | None = None

    def exceeded(self, variables: int, rows: int, quadratic: bool) -> str:
        """The limit that a model breaks, in words; "" if none."""
        if self.variables is not None and variables > self.variables:
            return f"{self.variables:,} variables (the program has {variables:,})"
        if self.rows is not None and rows > self.rows:
            return f"{self.rows:,} rows (the program has {rows:,})"
        if quadratic and self.quadratic_variables is not None and variables > self.quadratic_variables:
            return f"{self.quadratic_variables:,} variables with quadratic terms (the program has {variables:,})"
        return ""


@dataclass(frozen=True)
class PyomoProfile:
    """How Pyomo drives a solver (see the module's description).

    Attributes:
        options: setting -> the solver's own name for it.
        fixed: option -> value that is always set.
        fixed_quadratic: option -> value that is set for a native quadratic objective.
        second: of a second try, after a failure.
        unlimited: setting -> value that means "no limit".
    """

    factory: str
    interface: str
    persistent: bool
    start: str
    accepts: frozenset[str]
    form: str
    options: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, OptionValue] = field(default_factory=dict)
    fixed_quadratic: Mapping[str, OptionValue] = field(default_factory=dict)
    second: Mapping[str, OptionValue] = field(default_factory=dict)
    unlimited: Mapping[str, OptionValue] = field(default_factory=dict)


@dataclass(frozen=True)
class SolverProfile:
    """A solver as its TOML file describes it.

    Attributes:
        name: the flag's value.
        source: the file, for messages.
        module, package: Python module and distribution that bring the solver.
        install: how to install it.
        licence: what the licence allows.
        backend: ``module:Class`` of a backend of its own; "" where Pyomo drives it.
        pyomo: how Pyomo drives it; None where it has a backend of its own.
        size: limits of the free licence.
    """

    name: str
    source: str
    module: str
    package: str
    install: str
    licence: str
    backend: str = ""
    pyomo: PyomoProfile | None = None
    size: SizeLimits = SizeLimits()


def read_profile(path: Path) -> SolverProfile:
    """A profile from a file.

    Raises:
        SolverError: the file cannot be read, or see :func:`parse_profile`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SolverError(f"solver profile {str(path)!r} cannot be read: {error.strerror}; check the path") from error
    return parse_profile(text, str(path))


def parse_profile(text: str, source: str) -> SolverProfile:
    """A profile from TOML text.

    Args:
        source: name of the file, for messages.

    Raises:
        SolverError: not TOML, or a key that is missing, unknown or of another type; the message names file and key.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SolverError(f"solver profile {source!r} is not valid TOML: {error}") from error
    table = _Table(source, "", content)
    table.only([*_TOP, "backend", "pyomo", "options", "fixed", "fixed_quadratic", "second", "unlimited", "size"])
    named = {key: table.text(key) for key in _TOP}
    backend = table.text("backend", "")
    if bool(backend) == ("pyomo" in content):
        raise SolverError(
            f"solver profile {source!r} needs either 'backend' (module:Class) or a table [pyomo], "
            f"and has {'both' if backend else 'neither'}"
        )
    if backend and not all(backend.partition(":")):
        raise table.error("backend", "must read 'module:Class'", "name the class after a colon")
    if backend:
        for key in ("options", "fixed", "fixed_quadratic", "second", "unlimited", "size"):
            if key in content:
                raise table.error(key, "belongs to a solver that Pyomo drives", "drop it, or use [pyomo]")
    return SolverProfile(
        name=named["name"],
        source=source,
        module=named["module"],
        package=named["package"],
        install=named["install"],
        licence=named["licence"],
        backend=backend,
        pyomo=None if backend else _pyomo(table),
        size=_size(table),
    )


def _pyomo(top: _Table) -> PyomoProfile:
    table = top.table("pyomo")
    table.only(["factory", "interface", "persistent", "start", "accepts", "form"])
    options = top.table("options")
    options.only(OPTIONS)
    unlimited = top.table("unlimited")
    unlimited.only(["node_limit"])
    accepts = frozenset(table.texts("accepts", ACCEPTS))
    form = table.choice("form", (LINEAR, QUADRATIC), LINEAR)
    if "linear" not in accepts:
        raise table.error("accepts", "must hold 'linear': every program has linear rows and integer columns", "add it")
    if form == QUADRATIC and "quadratic objective" not in accepts:
        raise table.error("form", "is 'quadratic', which 'accepts' does not allow", "add 'quadratic objective' there")
    return PyomoProfile(
        factory=table.text("factory"),
        interface=table.choice("interface", ("contrib", "legacy"), "contrib"),
        persistent=table.flag("persistent", False),
        start=table.choice("start", ("none", "complete", "partial"), "none"),
        accepts=accepts,
        form=form,
        options={key: options.text(key) for key in options.content},
        fixed=top.table("fixed").scalars(),
        fixed_quadratic=top.table("fixed_quadratic").scalars(),
        second=top.table("second").scalars(),
        unlimited=unlimited.scalars(),
    )


def _size(top: _Table) -> SizeLimits:
    table = top.table("size")
    table.only(["variables", "rows", "quadratic_variables"])
    return SizeLimits(**{key: table.count(key) for key in table.content})


@dataclass(frozen=True)
class _Table:
    """One TOML table and where it stands, for messages."""

    source: str
    name: str
    content: Mapping[str, Any]

    def error(self, key: str, cause: str, cure: str) -> SolverError:
        place = f"[{self.name}] {key}" if self.name else key
        return SolverError(f"solver profile {self.source!r}: {place!r} {cause}; {cure}")

    def only(self, keys: Sequence[str]) -> None:
        for key in self.content:
            if key not in keys:
                close = difflib.get_close_matches(key, keys, n=1)
                cure = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(keys)}"
                raise self.error(key, "is no key of a profile", cure)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._of(key, str, "a string", default)
        if not value and default is None:
            raise self.error(key, "is empty", "give it a value")
        return str(value)

    def flag(self, key: str, default: bool) -> bool:
        return bool(self._of(key, bool, "true or false", default))

    def count(self, key: str) -> int:
        value = self._of(key, int, "a whole number", None)
        if isinstance(value, bool) or value < 1:
            raise self.error(key, f"must be a positive whole number, got {value!r}", "drop it where there is no limit")
        return int(value)

    def choice(self, key: str, allowed: Sequence[str], default: str) -> str:
        value = self.text(key, default)
        if value not in allowed:
            raise self.error(key, f"is {value!r}", f"choose one of {', '.join(map(repr, allowed))}")
        return value

    def texts(self, key: str, allowed: Sequence[str]) -> list[str]:
        values = self._of(key, list, "a list of strings", None)
        for value in values:
            if value not in allowed:
                raise self.error(key, f"holds {value!r}", f"choose from {', '.join(map(repr, allowed))}")
        return list(values)

    def table(self, key: str) -> _Table:
        content = self._of(key, dict, "a table", {})
        return _Table(self.source, key, content)

    def scalars(self) -> dict[str, OptionValue]:
        for key, value in self.content.items():
            if not isinstance(value, (bool, int, float, str)):
                raise self.error(key, "must be a string, a number, true or false", "write one value")
        return dict(self.content)

    def _of(self, key: str, kind: type, said: str, default: Any) -> Any:
        if key not in self.content:
            if default is None:
                raise self.error(key, "is missing", f"add it: {said}")
            return default
        value = self.content[key]
        if not isinstance(value, kind):
            raise self.error(key, f"must be {said}, got {value!r}", "change its type")
        return value


def option_value(text: str) -> OptionValue:
    """The value of an option that was given as text: true/false, an integer, a number, else the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
