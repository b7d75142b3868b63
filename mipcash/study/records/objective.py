"""Identity of an objective: source, default arguments, closure, and what it uses of its own module.

The source is compared as unparsed from its syntax tree, so that comments, formatting and docstrings do not count. Data are compared
by value: numbers, strings, lists, dicts and arrays. Other objects are compared by the name of their type only. Data that the
objective itself writes to (a counter, a log, a cache) are left out, because they change with each evaluation.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from mipcash.errors import warn
from mipcash.text import readable, storable

BEFORE_CALLS = ("__init__", "__post_init__", "__new__")
"""Methods that write attributes before an object is called."""
REMOVING = ("pop", "popitem", "setdefault")
"""Methods that change a list or a dict and are called for their value."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Node = Named | ast.Lambda


def identity_of(objective: Any) -> dict[str, str] | None:
    """Return the name and the digest of an objective; None if the source of a function is not available.

    Args:
        objective: a function, a partial function, a callable object, or a dict of them. An object with an attribute
            ``compared_by`` is compared by that.
    """
    objective = getattr(objective, "__dict__", {}).get("compared_by", objective)
    functions = objective if isinstance(objective, Mapping) else {"": objective}
    try:
        known = [(name, _Reader().callable(function)) for name, function in sorted(functions.items())]
    except Exception:  # exceptions from inspecting an object must not end a run
        return None
    if any(content is None for _, content in known):
        return None
    names = ", ".join(_name(function) for _, function in sorted(functions.items()))
    return {"name": storable(names, 200), "digest": hashlib.sha256(repr(known).encode()).hexdigest()}


def warn_of_another(storage: str, then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Warn if the objective differs from the one that evaluated the trials of a storage."""
    if then["digest"] == now["digest"]:
        return
    another = then["name"] != now["name"]
    change = (
        f"{now['name']!r} now" if another else "the same by name, and its source or the values that it uses changed"
    )
    warn(
        f"the finished trials of {storage} were evaluated by another objective: it was {then['name']!r} and is {change}. They are "
        "kept, and mixed with those of the objective now. To start anew, give storage=mc.Journal(path, fresh=True) (mipcash run "
        "--fresh) or another storage="
    )


class _Reader:
    """Reader of the parts of an objective that are compared. Each function and class is read once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def callable(self, function: Any) -> Any:
        """Return nested tuples that represent a callable; None if its source is not available."""
        if isinstance(function, partial):
            return self._with(function.func, self.value(function.args), self.value(function.keywords))
        function = inspect.unwrap(function)
        if isinstance(function, MethodType):
            return self._with(function.__func__, self._instance(function.__self__))
        if isinstance(function, FunctionType):
            return self._function(function)
        if isinstance(function, type) or inspect.isbuiltin(function):
            return None
        return self._instance(function)

    def value(self, value: Any) -> Any:
        """Return a representation of data: the value, or the name of its type if it is no plain data."""
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            return type(value).__name__, repr(value)
        if isinstance(value, (list, tuple)):
            return type(value).__name__, [self.value(v) for v in value]
        if isinstance(value, dict):
            return type(value).__name__, sorted(repr((self.value(k), self.value(v))) for k, v in value.items())
        if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()
        if isinstance(value, (FunctionType, MethodType, partial)):
            function = value.__func__ if isinstance(value, MethodType) else value
            found = self.callable(function)
            return type(value).__name__, getattr(function, "__qualname__", "") if found is None else found
        return value.__qualname__ if isinstance(value, type) else type(value).__qualname__

    def _with(self, function: Any, *beside: Any) -> Any:
        content = self.callable(function)
        return None if content is None else (content, *beside)

    def _function(self, function: FunctionType) -> Any:
        if id(function) in self._seen:
            return function.__qualname__
        self._seen.add(id(function))
        node = _node_of(function)
        if node is None:
            return None
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        written = {path[0] for path in _written(node)}
        closed = {name: _content(cell) for name, cell in cells.items() if name not in written}
        given = self.value((function.__defaults__, function.__kwdefaults__, closed))
        return ast.unparse(node), given, self._used(node, function.__globals__, function.__module__, cells)

    def _instance(self, instance: Any) -> Any:
        """Represent a callable object, or the owner of a method: its classes, and the attributes that calls do not write."""
        own, *bases = type(instance).__mro__[:-1]
        classes = [self._class(own), *(self._class(k) for k in bases if k.__module__ == own.__module__)]
        if classes[0] is None:
            return None
        nodes = [node for kind in (own, *bases) if (node := _node_of(kind)) is not None]
        written = {path[1] for node in nodes for path in _written(node) if len(path) > 1}
        return classes, self.value({n: v for n, v in getattr(instance, "__dict__", {}).items() if n not in written})

    def _class(self, kind: type) -> Any:
        if id(kind) in self._seen:
            return kind.__qualname__
        self._seen.add(id(kind))
        node = _node_of(kind)
        if node is None:
            return None
        namespace = vars(sys.modules[kind.__module__]) if kind.__module__ in sys.modules else {}
        return ast.unparse(node), self._used(node, namespace, kind.__module__)

    def _used(self, node: Node, namespace: Mapping[str, Any], module: str, closed: Iterable[str] = ()) -> list[Any]:
        """Represent the globals that a function or class only reads: data, and functions and classes of its module."""
        parts = list(ast.walk(node))
        own = {
            *closed,
            *(path[0] for path in _written(node)),
            *(part.arg for part in parts if isinstance(part, ast.arg)),
        }
        names = {part.id for part in parts if isinstance(part, ast.Name)} & namespace.keys() - own
        return [(name, self._global(namespace[name], module)) for name in sorted(names)]

    def _global(self, value: Any, module: str) -> Any:
        if isinstance(value, type):
            return self._class(value) if value.__module__ == module else None
        if callable(value):
            function = inspect.unwrap(value)
            mine = isinstance(function, FunctionType) and function.__module__ == module
            return self._function(function) if mine else None
        return self.value(value)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable is not assigned yet
        return None


def _node_of(thing: FunctionType | type) -> Node | None:
    """Return the syntax tree of a function or a class; None if its source is not available."""
    try:
        lines, first = inspect.findsource(thing)
        tree = _parsed("".join(lines))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    nodes = list(ast.walk(tree))
    if isinstance(thing, type):
        return next((n for n in nodes if isinstance(n, ast.ClassDef) and _first_line(n) == first + 1), None)
    code = thing.__code__
    if code.co_name != "<lambda>":
        named = (n for n in nodes if isinstance(n, FUNCTIONS) and n.name == code.co_name)
        return next((n for n in named if _first_line(n) == code.co_firstlineno), None)
    found = [n for n in nodes if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno and _holds(n, code)]
    return max(found, key=lambda n: n.col_offset, default=None)  # of nested lambdas on one line, the innermost


@lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module:
    """Parse a file and remove its docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, Named) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _first_line(node: Named) -> int:
    """Return the first line of a definition as Python counts it, which is the first decorator's."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _holds(node: ast.Lambda, code: CodeType) -> bool:
    """Return True if all code lies in the body of a lambda. Empty positions, which mark beginning and end, are ignored."""
    places = [(a, b, c, d) for a, c, b, d in code.co_positions() if None not in (a, b, c, d) and (a, b) != (c, d)]
    body = node.body
    begin, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    return bool(places) and all(begin <= (a, b) and (c, d) <= end for a, b, c, d in places)


def _written(node: Node) -> list[list[str]]:
    """Return what a function, or a class after its creation, writes to: ``["self", "calls"]`` for ``self.calls[0] += 1``."""
    bodies: list[ast.AST] = [node]
    if isinstance(node, ast.ClassDef):
        bodies = [n for n in node.body if isinstance(n, FUNCTIONS) and n.name not in BEFORE_CALLS]
    found: list[list[str]] = []
    for part in (part for body in bodies for part in ast.walk(body)):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            found.append(_path(part))
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            found.append(_path(part.value.func)[:-1])  # called for its side effect: calls.append(1)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in REMOVING:
            found.append(_path(part.func)[:-1])
    return [path for path in found if path]


def _path(node: ast.expr) -> list[str]:
    """Return the names in ``self.calls[0]``, in their order; empty if the expression does not start with a name."""
    names: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        elif not isinstance(node, ast.Subscript):
            return []
        node = node.value
    return [node.id, *reversed(names)]


def _name(function: Any) -> str:
    """Return the name by which a user knows an objective."""
    function = function.func if isinstance(function, partial) else function
    named = function if hasattr(function, "__qualname__") else type(function)
    return readable(getattr(named, "__qualname__", "")).replace("<locals>.", "")
