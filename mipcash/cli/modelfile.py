"""Model files: space and objective of a run, found by name in ``mipcash.models`` or by path, never by a static import.

The contract of a model file:

    \"\"\"The first line of the docstring is the model's description.\"\"\"
    DEFAULTS = {"budget": 40}                       # optional: defaults of `mipcash run`
    LIMITS = {"latency_ms": 5.0}                    # optional: as `limits=` of mc.minimize; --limit overrides it
    space = mc.Space(...)                           # either these two,
    def objective(config) -> float | dict: ...      # it may yield, step by step; or a function per output,
                                                    # objective = {"loss": f, "latency_ms": g},
    COSTS = {"loss": 60, "latency_ms": 1}           # and their costs, optional: as `costs=` of mc.minimize
    def build(*, folds: int = 5): return space, objective    # or this, or both; its arguments are the model's options
    def starts(**options) -> list[dict]: ...        # optional: configurations to evaluate first
    def report(result, **options) -> str: ...       # optional: printed at the end of a run

``build`` is used when options are given, or when the module does not define both ``space`` and ``objective``. A search of ``space``
that stands in the file by itself is not made.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import tokenize
import traceback
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module, resources
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from mipcash.cli.limits import Pairs, declared
from mipcash.errors import ModelError
from mipcash.space.direction import MINIMIZE
from mipcash.space.space import Space
from mipcash.study.calls import check_objective
from mipcash.study.evaluating.evaluation import Objective
from mipcash.study.evaluating.raised import pip_command
from mipcash.text import did_you_mean, kind, readable, shown

PACKAGE = "mipcash.models"
STANDARD = {
    "budget": 50,
    "seed": 0,
    "solver": "auto",
    "optimizer": "hybrid",
    "timeout": None,
    "workers": 1,
    "seconds_per_proposal": 5.0,
    "evaluation_timeout": None,
    "evaluation_memory": None,
    "pruning": None,
    "confirm": None,
    "direction": MINIMIZE,
}
"""Standard settings of ``mipcash run``, used if neither the command nor the model gives one."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
HOW = (
    "A model file declares `space` (a mipcash.Space) and `objective` (a function of a configuration that returns a "
    "float or a dict with 'loss'), or a function `build(**options)` that returns the two"
)


@dataclass(frozen=True)
class Model:
    """A model file that has been loaded.

    Attributes:
        reference: its name, or the absolute path of its file, by which it can be loaded from any folder.
        title: the name, or the file's stem.
        options: the given options, converted for the model's functions.
        defaults: its ``DEFAULTS``.
        limits: its ``LIMITS``.
        costs: its ``COSTS``; None: it has none.
    """

    reference: str
    title: str
    description: str
    space: Space
    objective: Objective
    options: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    module: types.ModuleType | None = field(default=None, repr=False)
    limits: Pairs = field(default_factory=dict)
    costs: Mapping[str, float] | None = None

    def report(self, result: Any) -> str:
        """Return the model's own report on a result; empty if it has none."""
        return str(_guarded(f"report() of {self.title}", lambda: self._call("report", result)) or "")

    def starts(self) -> list[Mapping[str, Any]]:
        """Return the configurations that a run evaluates first.

        Raises:
            ModelError: ``starts`` of the model fails.
        """
        found = _guarded(f"starts() of {self.title}", lambda: self._call("starts")) or ()
        if not isinstance(found, (list, tuple)):
            raise ModelError(f"starts() of {self.title} must return a list of configurations, got {shown(found)}")
        return list(found)

    def _call(self, name: str, *arguments: Any) -> Any:
        """Return what an optional function of the model returns, called with the options that it accepts; None: there is none."""
        function = getattr(self.module, name, None)
        if function is None:
            return None
        if not callable(function):
            raise ModelError(f"{name} of {self.title} is {shown(function)}; make it a function, def {name}(...)")
        accepted = _keywords(function)
        return function(*arguments, **{k: v for k, v in self.options.items() if accepted is None or k in accepted})


def names() -> dict[str, str]:
    """Return the names of the installed models with the first line of their docstrings, without importing them."""
    files = [f for f in resources.files(PACKAGE).iterdir() if f.name.endswith(".py") and not f.name.startswith("_")]
    return {f.name[:-3]: _description(f.read_text(encoding="utf-8")) for f in sorted(files, key=lambda f: f.name)}


def is_path(reference: str) -> bool:
    """Return True if a model is given by its file rather than by a name."""
    return reference.endswith(".py") or "/" in reference or "\\" in reference


def title_of(reference: str) -> str:
    """Return the title of a model's runs: its name, or the stem of its file."""
    return Path(reference).stem if is_path(reference) else reference


def load(reference: str, options: Mapping[str, str] | None = None) -> Model:
    """Load a model by name or by path.

    Args:
        reference: a name of ``names``, or the path of a Python file.
        options: ``--option key=value`` as given; they become arguments of the model's ``build``.

    Raises:
        ModelError: the model does not exist, fails to import, lacks a required declaration, or an option is unknown or invalid.
    """
    if is_path(reference):
        path = Path(os.path.expanduser(reference)).resolve()
        module, where, reference = _import_file(path), str(path), str(path)
    else:
        module, where = _import_named(reference), f"model {reference!r}"
    given = _arguments(where, module, options or {})
    space, objective = _declared(where, module, given)
    return Model(
        reference=reference,
        title=title_of(reference),
        description=(module.__doc__ or "").strip().split("\n")[0],
        space=space,
        objective=objective,
        options=given,
        defaults=_defaults(where, module),
        module=module,
        limits=declared(where, getattr(module, "LIMITS", None)),
        costs=getattr(module, "COSTS", None),
    )


def load_space(reference: str, options: Mapping[str, str] | None = None) -> Space:
    """Load only the space of a model; its file need not declare an objective.

    Raises:
        ModelError: see ``load``.
    """
    if is_path(reference) and not options:
        path = Path(os.path.expanduser(reference)).resolve()
        module = _import_file(path)
        space = getattr(module, "space", None)
        if isinstance(space, Space):
            return space
    return load(reference, options).space


# -- finding and importing ------------------------------------------------------------------------------------------


def _description(source: str) -> str:
    try:
        return (ast.get_docstring(ast.parse(source)) or "").split("\n")[0]
    except SyntaxError:
        return "(cannot be read)"


def _import_named(name: str) -> Any:
    known = names()
    if name not in known:
        hint = did_you_mean(name, known, "there are")
        path = f". For a file of your own give its path, ./{name}.py" if Path(f"{name}.py").is_file() else ""
        raise ModelError(f"there is no model {name!r}; {hint}{path}")
    return _guarded(f"model {name!r}", lambda: import_module(f"{PACKAGE}.{name}"))


def _import_file(path: Path) -> Any:
    if not path.is_file():
        found = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, found, "") or "give the path of a Python file, or a name of `mipcash models`"
        raise ModelError(f"there is no model file {path}; {hint}")
    name = f"mipcash_model_{path.stem.replace('.', '_')}"  # a dot would name a package
    spec = spec_from_file_location(name, path, loader=_Declaring(name, str(path)))
    if spec is None or spec.loader is None or path.suffix != ".py":
        raise ModelError(f"{path} is not a Python file; a model file ends in .py")
    module, loader = module_from_spec(spec), spec.loader
    # As for a script, modules beside the file can be imported, also later by the objective. Installed packages come first,
    # because a model called xgboost.py would hide the package of that name.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module  # dataclasses and pickle look classes up there
    _guarded(str(path), lambda: loader.exec_module(module))
    return module


class _Declaring(SourceFileLoader):
    """Loader of the declaring part of a file, which is not cached as bytecode."""

    def get_code(self, fullname: str) -> types.CodeType:
        return self.source_to_code(_declaring_part(Path(self.path)), self.path)


def _declaring_part(path: Path) -> ast.Module:
    """Return a model file without searches of its `space` that it makes when it is run, and without what reads them."""
    with tokenize.open(path) as file:  # in the encoding that the file declares
        tree = ast.parse(file.read(), str(path))
    kept, bound, left_out = list[ast.stmt](), set[str](), set[str]()
    searching = {f.name for f in tree.body if isinstance(f, ast.FunctionDef) and any(map(_searches, f.body))}
    for statement in tree.body:
        names = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
        stored = {n.id for n in names if isinstance(n.ctx, ast.Store)} | {getattr(statement, "name", "")}
        stored |= {(n.asname or n.name).split(".")[0] for n in ast.walk(statement) if isinstance(n, ast.alias)}
        reads = any(n.id in left_out for n in names)
        if not _defines(statement) and (reads or ("space" in bound and _searches(statement, searching))):
            left_out |= stored - bound
        else:
            kept.append(statement)
            bound |= stored
    if lost := left_out & {"LIMITS", "DEFAULTS", "COSTS", "objective", "starts", "report"}:
        raise ModelError(
            f"{path}: {', '.join(sorted(lost))} read the result of a search at the top level of the file, which is left out; write "
            "the values there, or search in a function"
        )
    tree.body = kept
    return tree


def _defines(statement: ast.stmt) -> bool:
    """Return True for a definition, an import, and what a script does only under ``if __name__ == "__main__"``."""
    return isinstance(statement, DEFINITIONS) or (
        isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
    )


def _searches(node: ast.AST, searching: Collection[str] = ()) -> bool:
    """Return True if code calls ``minimize`` or ``Study`` with `space`, or a function that does; definitions call nothing.

    Args:
        searching: names of these functions.
    """
    called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
    if called in searching:
        return True
    if isinstance(node, ast.Call) and called in ("minimize", "Study"):
        given = [n for a in (*node.args, *(k.value for k in node.keywords)) for n in ast.walk(a)]
        if any(isinstance(n, ast.Name) and n.id == "space" for n in given):
            return True
    inside = (n for n in ast.iter_child_nodes(node) if not isinstance(n, (ast.Lambda, *DEFINITIONS)))
    return any(_searches(n, searching) for n in inside)


def _guarded(where: str, action: Callable[[], Any]) -> Any:
    """Run code of a model file. Convert its exceptions to a ModelError with the place and the cure."""
    try:
        return action()
    except ModelError:  # of a bundled model's own
        raise
    except ModuleNotFoundError as error:
        raise ModelError(
            f"{where} needs the package {error.name!r}, which is not installed: {pip_command(error.name or '')}"
        ) from error
    except SyntaxError as error:
        raise ModelError(f"{where} is not valid Python: {error.msg} ({error.filename}, line {error.lineno})") from error
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        if isinstance(error, SystemExit):
            place += "; put what runs the model under `if __name__ == '__main__':`"
        if isinstance(error, NameError):
            place += "; a search at the top level of a model file is left out, and so is what reads its result"
        raise ModelError(f"{where} failed: {kind(error)}: {readable(error)}{place}") from error


# -- declarations in the file ---------------------------------------------------------------------------------------


def _declared(where: str, module: types.ModuleType, options: Mapping[str, Any]) -> tuple[Space, Objective]:
    pair = (getattr(module, "space", None), getattr(module, "objective", None))
    build = getattr(module, "build", None)
    if callable(build) and (options or None in pair):
        pair = _guarded(f"build() of {where}", lambda: build(**options))
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ModelError(f"build() of {where} must return (space, objective), got {type(pair).__name__}")
        where = f"build() of {where}"
    space, objective = pair
    if space is None and objective is None:
        raise ModelError(f"{where} declares neither `space` nor `objective`. {HOW}")
    if not isinstance(space, Space):
        what = (
            "does not declare `space`" if space is None else f"has a `space` that is not a mipcash.Space but {space!r}"
        )
        raise ModelError(f"{where} {what}. {HOW}")
    if not callable(objective) and not isinstance(objective, Mapping):
        what = "does not declare" if objective is None else "has no function or dict of functions as"
        raise ModelError(f"{where} {what} `objective`. {HOW}")
    try:
        check_objective(objective, space.parameters)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{where}: {error}. {HOW}") from error
    return space, objective


def _defaults(where: str, module: types.ModuleType) -> dict[str, Any]:
    defaults = getattr(module, "DEFAULTS", {})
    if not isinstance(defaults, Mapping):
        raise ModelError(f"DEFAULTS of {where} must be a dict such as {{'budget': 40}}, got {shown(defaults)}")
    defaults = dict(defaults)
    unknown = [name for name in defaults if name not in STANDARD]
    if unknown:
        raise ModelError(f"DEFAULTS of {where} has {unknown}; it may set {', '.join(STANDARD)}")
    return defaults


# -- options --------------------------------------------------------------------------------------------------------


def pairs(options: Sequence[str]) -> dict[str, str]:
    """Return the values of ``--option key=value`` by key.

    Raises:
        ModelError: an option is no KEY=VALUE pair.
    """
    found = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key.isidentifier():
            raise ModelError(f"--option takes KEY=VALUE, such as --option folds=5; got {option!r}")
        found[key] = value
    return found


def _keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter] | None:
    """Return the arguments that a function takes by name; None if it takes any."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    return {n: p for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _arguments(where: str, module: types.ModuleType, options: Mapping[str, str]) -> dict[str, Any]:
    """Check ``--option`` values against the signature of ``build`` and convert them to its types."""
    build = getattr(module, "build", None)
    if not callable(build):
        if options:
            raise ModelError(f"{where} takes no options (it has no function build), got {', '.join(options)}")
        return {}
    accepted = _keywords(build)
    if accepted is None:
        return dict(options)
    for name in options:
        if name not in accepted:
            near = did_you_mean(name, accepted, "")
            raise ModelError(
                f"{where} has no option {name!r}; {f'{near} It has' if near else 'it has'} {_listed(accepted)}"
            )
    uses_build = options or not (hasattr(module, "space") and hasattr(module, "objective"))
    missing = [n for n, p in accepted.items() if p.default is p.empty and n not in options]
    if uses_build and missing:
        raise ModelError(f"{where} needs the option {missing[0]!r}: add --option {missing[0]}=VALUE")
    hints = _hints(build)
    return {n: _convert(where, n, text, hints.get(n), accepted[n].default) for n, text in options.items()}


def _listed(accepted: Mapping[str, inspect.Parameter]) -> str:
    if not accepted:
        return "no options"
    return ", ".join(n if p.default is p.empty else f"{n} (default {p.default!r})" for n, p in accepted.items())


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # an annotation that only a type checker can resolve gives no type
        return {}


def _convert(where: str, name: str, text: str, hint: Any, default: Any) -> Any:
    """Convert an option's text to the type in ``build``; the text is kept if the type includes str."""
    if typing.get_origin(hint) is typing.Literal:
        listed = {str(value): value for value in typing.get_args(hint)}
        if text not in listed:
            raise ModelError(f"option {name}={text} of {where}: {text!r} is none of {', '.join(listed)}")
        return listed[text]
    if hint is None:
        hint = str if default is None or default is inspect.Parameter.empty else type(default)
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    if str in kinds:
        return text
    if type(None) in kinds and text.lower() == "none":
        return None
    try:
        return TypeAdapter(hint).validate_strings(text)
    except (ValidationError, PydanticUserError):
        wanted = " or ".join(getattr(k, "__name__", str(k)) for k in kinds)
        raise ModelError(f"option {name}={text} of {where}: {text!r} is not of type {wanted}") from None
