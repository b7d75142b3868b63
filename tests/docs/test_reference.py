"""Completeness of the reference: every public name has a page, all arguments are described, and the examples run."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import FunctionType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
DIRECTIVE = re.compile(r"^::: (\S+)\n((?:[ \t]+.*\n?)*)", re.M)
NEEDS = {"mipcash.integrations.optuna": "optuna", "mipcash.report.axes": "matplotlib"}
"""Optional packages without which a module cannot be imported or used."""
PUBLIC = (
    "mipcash",
    "mipcash.settings",
    "mipcash.report",
    "mipcash.integrations.sklearn",
    "mipcash.integrations.optuna",
)
ROLE = re.compile(r":(?:meth|class|func|mod|attr|data|obj|exc|ref|const):`")


@dataclass(frozen=True)
class Shown:
    """Directive of a page: the path of an object and its options, which select the members to show."""

    path: str
    options: str

    def found(self) -> Any:
        """Return the object; skip the test if its optional package is missing."""
        for module, package in NEEDS.items():
            if self.path.startswith(module):
                pytest.importorskip(package)
        return resolve_name(self.path)

    def objects(self) -> Iterator[tuple[str, Any]]:
        """Yield the classes and functions with a heading: the object itself, or the objects of a module."""
        found = self.found()
        if not isinstance(found, ModuleType):
            yield self.path, found
            return
        for name, each in vars(found).items():
            own = getattr(each, "__module__", "") == self.path and isinstance(each, (type, FunctionType))
            if own and not name.startswith("_") and f"!^{name}$" not in self.options:
                yield f"{self.path}.{name}", each

    def callables(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        """Yield these objects and their shown methods, which are those with a docstring."""
        for path, each in self.objects():
            yield path, each
            if not isinstance(each, type) or "members: false" in self.options:
                continue
            inherited = "inherited_members: true" in self.options
            for name in {n: None for c in (each.__mro__ if inherited else (each,)) for n in vars(c)}:
                member = inspect.getattr_static(each, name)
                function = getattr(member, "__func__", member)
                if isinstance(function, FunctionType) and not name.startswith("_") and function.__doc__:
                    yield f"{path}.{name}", getattr(each, name)


SHOWN = [Shown(*m) for page in PAGES for m in DIRECTIVE.findall(page.read_text(encoding="utf-8"))]
each_shown = pytest.mark.parametrize("shown", SHOWN, ids=lambda s: s.path)


def arguments(found: Any) -> set[str]:
    """Return the names in the section ``Args`` of a docstring."""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)*)", inspect.getdoc(found) or "", re.M)
    entries = re.findall(r"^    (\*{0,2}\w[\w, *]*): ", section[1] if section else "", re.M)
    return {name.strip("* ") for entry in entries for name in entry.split(",")}


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_on_a_page(module: str) -> None:
    paths, package = {shown.path for shown in SHOWN}, Shown(module, "").found()
    found = {n: getattr(package, n) for n in package.__all__ if not n.startswith("_")}
    objects = {n: f"{o.__module__}.{o.__qualname__}" for n, o in found.items() if not isinstance(o, ModuleType)}
    assert [n for n, path in objects.items() if path not in paths] == [], f"names of {module} that are on no page"


def test_every_page_is_in_the_navigation_and_no_object_is_shown_twice() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [p.name for p in PAGES if f"reference/{p.name}" not in navigation] == [], "pages without navigation"
    paths = [shown.path for shown in SHOWN]
    assert sorted(p for p in paths if paths.count(p) > 1) == [], "objects on several pages"


@each_shown
def test_every_argument_is_described(shown: Shown) -> None:
    for path, each in shown.callables():
        # exceptions take any arguments, like Python's own
        signature = inspect.Signature() if path.startswith("mipcash.errors.") else inspect.signature(each)
        lacking = [name for name in signature.parameters if name not in {"self", *arguments(each)}]
        assert lacking == [], f"the section Args of {path} lacks {', '.join(lacking)}"


@each_shown
def test_every_object_has_an_example_that_runs(shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    for path, each in shown.objects():
        assert re.search(r"^Examples:\n    >>> ", inspect.getdoc(each) or "", re.M), f"{path} has no example"
        for test in doctest.DocTestFinder().find(each, path, globs={}):
            said: list[str] = []
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
            assert said == [], f"the example of {test.name} differs: {''.join(said)}"


def test_no_docstring_has_a_role_of_sphinx() -> None:
    files = sorted((ROOT / "mipcash").rglob("*.py"))
    assert [f"{f.relative_to(ROOT)} has a raw role" for f in files if ROLE.search(f.read_text(encoding="utf-8"))] == []
