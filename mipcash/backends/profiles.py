"""Solver profiles: TOML files that describe solvers; unknown keys and wrong types are errors.

Keys
    name = "gurobi"                       value of ``solver=`` and ``--solver``
    module = "gurobipy"                   Python module by which the solver is detected
    package = "gurobipy"                  its distribution, for the version
    install = "pip install ..."           how to get it
    licence = "..."                       what the licence allows
    backend = "package.module:Class"      a backend class, called with ``options=``; or instead of it:

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

    [fixed]                               options that are always set.
    [fixed_quadratic]                     options that are set for a native quadratic objective.
    [second]                              options of a second run, after the solver failed with those above.
    [unlimited]                           values that mean "no limit": node_limit.
    [size]                                limits of a free licence: variables, rows, quadratic_variables
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from mipcash.errors import SolverError
from mipcash.text import did_you_mean

OptionValue = bool | int | float | str

LINEAR = "linear"
QUADRATIC = "quadratic"

Text = Annotated[str, Field(strict=True, min_length=1)]
Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
Limit = Annotated[int, Field(strict=True, gt=0)]
Accepted = Literal["linear", "quadratic objective", "quadratic rows"]
"""Problem classes that a solver may accept, each in combination with integer columns."""
Setting = Literal["time_limit", "threads", "gap", "absolute_gap", "seed", "node_limit"]
"""Settings for which a profile gives the solver's own option names."""

Form = Literal["linear", "quadratic"]

ONLY_THESE = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=ONLY_THESE)
class SizeLimits:
    """Size limits of a free licence; None means no limit.

    Attributes:
        variables, rows: of the whole model.
        quadratic_variables: variables of a model that has quadratic terms.
    """

    variables: Limit | None = None
    rows: Limit | None = None
    quadratic_variables: Limit | None = None

    def exceeded(self, variables: int, rows: int, quadratic: bool) -> str:
        """Return the limit that a model exceeds, in words; "" if it exceeds none."""
        if self.variables is not None and variables > self.variables:
            return f"{self.variables:,} variables (the program has {variables:,})"
        if self.rows is not None and rows > self.rows:
            return f"{self.rows:,} rows (the program has {rows:,})"
        if quadratic and self.quadratic_variables is not None and variables > self.quadratic_variables:
            return f"{self.quadratic_variables:,} variables with quadratic terms (the program has {variables:,})"
        return ""


def _with_linear(accepts: frozenset[str]) -> frozenset[str]:
    if LINEAR not in accepts:
        raise ValueError("must hold 'linear': every program has linear rows and integer columns; add it")
    return accepts


@dataclass(frozen=True, config=ONLY_THESE)
class PyomoProfile:
    """Settings with which Pyomo calls a solver (see the module's description)."""

    factory: Text
    accepts: Annotated[frozenset[Accepted], AfterValidator(_with_linear)]
    interface: Literal["contrib", "legacy"] = "contrib"
    persistent: StrictBool = False
    start: Literal["none", "complete", "partial"] = "none"
    form: Form = "linear"

    @property
    def takes_products(self) -> bool:
        """True if the solver accepts products of two reals, which no convex row expresses."""
        return "quadratic rows" in self.accepts

    @property
    def takes_quadratic(self) -> bool:
        """True if the solver accepts a quadratic objective."""
        return "quadratic objective" in self.accepts


def _class_path(path: str) -> str:
    if path and not all(path.partition(":")):
        raise ValueError("must read 'module:Class'; name the class after a colon")
    return path


@dataclass(frozen=True, config=ONLY_THESE)
class SolverProfile:
    """Description of a solver, read from its TOML file.

    Attributes:
        name: value of ``solver=`` and ``--solver``.
        module, package: Python module and distribution that provide the solver.
        install: how to install it.
        licence: what the licence allows.
        backend: ``module:Class`` of a backend; "" if the solver is called through Pyomo.
        pyomo: settings for Pyomo; None if the solver has its own backend.
        options: setting -> the solver's own name for it.
        fixed: option -> value that is always set.
        fixed_quadratic: option -> value that is set for a native quadratic objective.
        second: option -> value of a second run, after a failure.
        unlimited: setting -> value that means "no limit".
        size: limits of the free licence.
    """

    name: Text
    module: Text
    package: Text
    install: Text
    licence: Text
    backend: Annotated[StrictStr, AfterValidator(_class_path)] = ""
    pyomo: PyomoProfile | None = None
    options: Mapping[Setting, Text] = field(default_factory=dict)
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    fixed_quadratic: Mapping[str, Scalar] = field(default_factory=dict)
    second: Mapping[str, Scalar] = field(default_factory=dict)
    unlimited: Mapping[Literal["node_limit"], Scalar] = field(default_factory=dict)
    size: SizeLimits = SizeLimits()


_PROFILE = TypeAdapter(SolverProfile)
_OF_PYOMO = ("options", "fixed", "fixed_quadratic", "second", "unlimited", "size")


def read_profile(path: Path) -> SolverProfile:
    """Read a profile from a file.

    Raises:
        SolverError: the file cannot be read or is invalid, see ``parse_profile``.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SolverError(f"solver profile {str(path)!r} cannot be read: {error.strerror}; check the path") from error
    return parse_profile(text, str(path))


def parse_profile(text: str, source: str) -> SolverProfile:
    """Parse a profile from TOML text.

    Args:
        source: name of the file, for messages.

    Raises:
        SolverError: not TOML, or a key that is missing, unknown or of another type; the message names file and key.
    """
    try:
        content = tomllib.loads(text)
        profile = _PROFILE.validate_python(content)
    except tomllib.TOMLDecodeError as error:
        raise SolverError(f"solver profile {source!r} is not valid TOML: {error}") from error
    except ValidationError as error:
        # a misspelt key is reported as missing, too; report it as unknown
        first = min(error.errors(), key=lambda e: e["type"] not in UNKNOWN_KEY)
        raise SolverError(f"solver profile {source!r}: {_error_text(first)}") from error
    if bool(profile.backend) == (profile.pyomo is not None):
        raise SolverError(
            f"solver profile {source!r} needs either 'backend' (module:Class) or a table [pyomo], "
            f"and has {'both' if profile.backend else 'neither'}"
        )
    for key in _OF_PYOMO if profile.backend else ():
        if key in content:
            raise SolverError(
                f"solver profile {source!r}: {key!r} belongs to a solver that Pyomo drives; drop it, or use [pyomo]"
            )
    if profile.pyomo is not None and profile.pyomo.form == QUADRATIC and not profile.pyomo.takes_quadratic:
        raise SolverError(
            f"solver profile {source!r}: '[pyomo] form' is 'quadratic', which 'accepts' does not allow; "
            "add 'quadratic objective' there"
        )
    return profile


UNKNOWN_KEY = ("unexpected_keyword_argument", "literal_error")
KEYS = {"": SolverProfile, "pyomo": PyomoProfile, "size": SizeLimits}
WANTED = {
    "string_type": "a string",
    "bool_type": "true or false",
    "int_type": "a positive whole number",
    "greater_than": "a positive whole number",
    "dataclass_type": "a table",
    "mapping_type": "a table",
    "dict_type": "a table",
    "frozen_set_type": "a list of strings",
}


def _error_text(error: Mapping[str, Any]) -> str:
    """Return a validation error of pydantic as location, cause and remedy."""
    kind, given, path = error["type"], error["input"], list(error["loc"])
    is_key = path[-1] == "[key]"  # the error is about a key of a table with fixed keys
    is_item = isinstance(path[-1], int)  # the error is about an item of a list
    path = [str(part) for part in (path[:-1] if is_key or is_item else path)]
    place = repr(path[0] if len(path) == 1 else f"[{path[0]}] {path[1]}")
    if kind == "unexpected_keyword_argument" or is_key:
        return f"{place} is no key of a profile; {did_you_mean(path[-1], _known(path), 'there are')}"
    if kind == "missing":
        return f"{place} is missing; add it"
    if kind == "string_too_short":
        return f"{place} is empty; give it a value"
    if kind == "literal_error":
        allowed = error["ctx"]["expected"].replace(" or ", ", ")
        return (
            f"{place} "
            + (f"holds {given!r}; choose from" if is_item else f"is {given!r}; choose one of")
            + f" {allowed}"
        )
    if kind == "value_error":
        return f"{place} {error['ctx']['error']}"
    wanted = WANTED.get(kind, "another type") if len(path) < 3 else "a string, a number, true or false"
    return f"{place} must be {wanted}, got {given!r}; change its type"


def _known(path: Sequence[str]) -> list[str]:
    """Return the valid keys of the table that the last key of a path belongs to."""
    limited: dict[str, list[str]] = {"options": list(get_args(Setting)), "unlimited": ["node_limit"]}
    table = "" if len(path) == 1 else path[0]
    return limited[table] if table in limited else [f.name for f in fields(KEYS[table])]


def option_value(text: str) -> OptionValue:
    """Convert an option given as text to true/false, an integer or a float; return any other text unchanged."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
