"""Consistency of the documents: valid links, complete decisions, entries for cited papers, existing modules."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SKIPPED = {".venv", ".venv-core", ".venv-docs", ".git", ".pytest_cache", "node_modules", "build", "dist", "site"}
DOCUMENTS = sorted(p for p in ROOT.rglob("*.md") if not SKIPPED & set(p.relative_to(ROOT).parts))
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
ARCHIVE = ROOT / "docs" / "decisions" / "archive.md"
REFERENCES = ROOT / "docs" / "references.md"
CODE = sorted(p for folder in ("mipcash", "models", "benchmarks", "tests") for p in (ROOT / folder).rglob("*.py"))

LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
KEY = re.compile(r"\b([a-z]{2,})((?:19|20)\d\d)\b")
"""Key of a reference, such as ``daxberger2019``."""
NAME = r"[A-Z][a-z]+(?:-[A-Z][a-z]+)?"
AUTHORS = re.compile(rf"\b({NAME})(?:(?:, {NAME})* and {NAME}| et al\.)?,? \(?((?:19|20)\d\d)\)?(?=[);:,.\s])")
"""Citation, such as ``Jones, Schonlau and Welch 1998``. The groups are the first name and the year."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.S)


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings as GitHub generates them."""
    headings = re.findall(r"^#+ (.*)$", without_code(path.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def prose(path: Path) -> str:
    """Return the docstrings and comments of a module on one line. Strings and names in its code are no citations."""
    source = path.read_text(encoding="utf-8")
    lone = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
    found = [str(n.value.value) for n in lone if isinstance(n.value, ast.Constant)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found += [t.string for t in tokens if t.type == tokenize.COMMENT]
    return re.sub(r"\s+", " ", " ".join(found))


def keys() -> set[str]:
    """Return the keys of all entries of the references."""
    return set(re.findall(r"^## (\S+)$", REFERENCES.read_text(encoding="utf-8"), re.M))


def test_the_benchmarks_page_is_short() -> None:
    assert len((ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_relative_links_resolve(path: Path) -> None:
    broken = []
    for target in LINK.findall(without_code(path.read_text(encoding="utf-8"))):
        file, _, fragment = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        found = (path.parent / file).resolve() if file else path
        if not found.exists() or (fragment and fragment not in anchors(found)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("path", DECISIONS, ids=lambda p: p.stem)
def test_a_decision_has_context_decision_and_one_table(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    first, *parts = re.split(r"^## ", text, flags=re.M)
    assert first.startswith(f"# {path.stem[:3]}: ")
    assert [p.split("\n", 1)[0] for p in parts] == ["Context", "Decision", "Table"]
    assert all(len(p.split("\n", 1)[1].split()) > 0 for p in parts)
    assert len(re.findall(r"^\|(?:-+\|)+$", text, re.M)) == 1, "one table"
    assert len(text.splitlines()) <= 42, "at most a screen"
    assert f"({path.name})" in (path.parent / "README.md").read_text(encoding="utf-8"), "the index lacks it"


def test_the_archive_has_the_remaining_decision_numbers_in_order() -> None:
    archived = re.findall(r"^## (.*)$", ARCHIVE.read_text(encoding="utf-8"), re.M)
    assert archived == sorted(archived)
    numbers = sorted([p.stem[:3] for p in DECISIONS] + archived)
    assert numbers == [f"{k:03}" for k in range(1, len(numbers) + 1)], "each number once, without gaps"


def test_cited_papers_have_an_entry() -> None:
    known, missing = keys(), {}
    for path in CODE:
        text = prose(path)
        cited = {author + year for author, year in KEY.findall(text)}
        cited |= {author.split("-")[0].lower() + year for author, year in AUTHORS.findall(text)}
        if cited - known:
            missing[name(path)] = sorted(cited - known)
    assert missing == {}


def test_keys_in_documents_have_an_entry() -> None:
    text = " ".join(p.read_text(encoding="utf-8") for p in DOCUMENTS if name(p).startswith("docs/"))
    assert {author + year for author, year in KEY.findall(text)} <= keys()


def test_cited_sections_of_the_model_exist() -> None:
    model = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^##+ (\d+(?:\.\d+)?)\.? ", model, re.M))
    cited = {
        (name(path), section)
        for path in CODE
        for section in re.findall(r"docs/model\.md, (\d+(?:\.\d+)?)", path.read_text(encoding="utf-8"))
    }
    assert {(where, section) for where, section in cited if section not in sections} == set()


def test_cited_documents_exist() -> None:
    cited = {d for p in CODE for d in re.findall(r"docs/[\w/-]+\.md", p.read_text(encoding="utf-8"))}
    assert sorted(d for d in cited if not (ROOT / d).exists()) == []


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if p.parent.name != "results"], ids=name)
def test_named_modules_and_files_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    modules = set(re.findall(r"`(mipcash(?:\.[a-z_0-9]+)+)`", text))
    files = set(re.findall(r"`((?:mipcash|models|benchmarks|tests|docs|solvers)/[\w/.-]+\.\w+)`", text))
    assert sorted(m for m in modules if not exists(m)) == []
    assert sorted(f for f in files if "NAME" not in f and not (ROOT / f).exists()) == []


def exists(dotted: str) -> bool:
    """Return True if a dotted name is a module or an attribute of a module."""
    module, _, attribute = dotted.rpartition(".")
    try:
        return find_spec(dotted) is not None or hasattr(import_module(module), attribute)
    except ModuleNotFoundError:
        return hasattr(import_module(module), attribute)
