"""Architecture: packages import in one direction, ``import mipcash`` stays light, and modules have a maximum length."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "mipcash"
ROOMS = [
    "modelling",
    "program",
    "backends",
    "space",
    "surrogates",
    "acquisition",
    "optimizers",
    "methods",
    "study",
    "report",
    "integrations",
    "cli",
]
"""Order of the packages: each may import itself and those before it. No package imports ``methods``, found by name."""
PLAIN = ["errors", "deadline", "text", "display", "lazy"]
"""Modules that every package may import. Each of them may import only the modules before it in this list."""
LONGEST = 450


def sources(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "__pycache__" not in p.parts)


def imported(file: Path, package: str = "mipcash") -> set[str]:
    """Return the modules of a package that a file imports, also under TYPE_CHECKING and inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == package}


def room_of(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_every_folder_is_a_listed_package() -> None:
    assert sorted(p.parent.name for p in ENGINE.glob("*/__init__.py")) == sorted(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_packages_import_in_one_direction(room: str) -> None:
    allowed = {*ROOMS[: ROOMS.index(room) + 1], *PLAIN, "__version__"}
    for file in sources(ENGINE / room):
        for name in imported(file):
            assert room == "methods" or room_of(name) != "methods", f"{file.relative_to(ROOT)} imports {name}"
            assert room_of(name) in allowed, f"{file.relative_to(ROOT)} imports {name}"


def test_the_library_never_imports_models_or_solvers() -> None:
    for file in sources(ENGINE):
        for name in imported(file):
            assert room_of(name) not in ("models", "solvers"), f"{file.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("module", PLAIN)
def test_plain_modules_import_no_package(module: str) -> None:
    assert {room_of(name) for name in imported(ENGINE / f"{module}.py")} <= set(PLAIN[: PLAIN.index(module)])


@pytest.mark.parametrize("package", ["mipcash", "benchmarks"])
def test_no_cycle_between_modules(package: str) -> None:
    files = sources(ROOT / package)
    names = {".".join(f.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): f for f in files}
    graph: dict[str, set[str]] = {}
    for name, file in names.items():
        if name == "mipcash":
            continue  # the package imports lazily, by name
        targets = {t if t in names else t.rpartition(".")[0] for t in imported(file, package)}
        # importing a module also imports its parent packages
        around = {".".join(t.split(".")[:k]) for t in targets for k in range(1, t.count(".") + 1)}
        graph[name] = (targets | {a for a in around if not f"{name}.".startswith(f"{a}.")}) & set(names)
        graph[name] -= {name, "mipcash"}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            for target in sorted(graph[name]):
                visit(target, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())
    assert len(done) == len(graph) > 20


@pytest.mark.parametrize("folder", ["mipcash", "models", "solvers", "tests", "benchmarks"])
def test_no_module_is_too_long(folder: str) -> None:
    lengths = {str(f.relative_to(ROOT)): length(f.read_text(encoding="utf-8")) for f in sources(ROOT / folder)}
    assert {f: n for f, n in lengths.items() if n > LONGEST} == {}


def length(source: str) -> int:
    """Return the number of lines of a module, counting one line for each docstring."""
    texts = (
        n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)
    )
    return len(source.splitlines()) - sum((text.end_lineno or text.lineno) - text.lineno for text in texts)


def test_the_import_contracts_name_the_same_packages() -> None:
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    layers = contract["importlinter:contract:rooms"]["layers"].split()
    assert layers == [f"mipcash.{room}" for room in reversed(ROOMS)]
    plain = contract["importlinter:contract:plain"]
    assert plain["source_modules"].split() == [f"mipcash.{module}" for module in PLAIN]
    assert sorted(plain["forbidden_modules"].split()) == sorted(layers)


def test_the_wheel_holds_every_folder() -> None:
    """Assert that ``packages`` lists exactly the folders with Python files."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    folders = {file.parent for file in sources(ENGINE)}
    expected = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert sorted(listed) == sorted(expected | {"mipcash.models", "mipcash.solvers"})
    assert all((folder / "__init__.py").is_file() for folder in folders)


def test_every_room_says_what_is_in_it() -> None:
    lacking = []
    for room in sorted(ENGINE.rglob("__init__.py")):
        named = set(re.findall(r"\w+", ast.get_docstring(ast.parse(room.read_text(encoding="utf-8"))) or ""))
        inside = [f.stem for f in room.parent.glob("*.py")] + [f.parent.name for f in room.parent.glob("*/__init__.py")]
        lacking += [f"{room}: {name}" for name in inside if name not in named | {"__init__"}]
    assert lacking == []
