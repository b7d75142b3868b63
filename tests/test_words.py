"""Words of the project: first words of docstrings, terms of the field, length of sentences."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FIRST = ("What", "Whether", "Nobody", "Where", "Why", "How", "Which", "Who", "That", "Those")
"""First words of a docstring that leave the subject open."""
TERMS = {
    "nobody": "name the subject",
    "breach": "violation",
    "breaches": "violations",
    "boldness": "exploration inflation",
    "boldest": "exploration inflation",
    "polish": "local search",
    "ledger": "trial table",
    "wander": "perturb",
    "helpers": "auxiliary variables",
    "ingredients": "acquisition inputs",
    "begun": "partially evaluated, started",
    "mended": "repaired, corrected",
    "said": "reported, returned",
}
"""Home-made words, and the terms of the field to write instead."""
LONGEST = 35
"""Largest number of words of a sentence."""
PAGES = [p for p in sorted((ROOT / "docs").glob("*.md")) if p.name not in ("model.md", "references.md")]


def texts(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield the docstrings, texts under constants and fields, and comments of a module: line, text, and True for a docstring."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        for statement in node.body if isinstance(getattr(node, "body", None), list) else ():  # type: ignore[attr-defined]
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value, True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: "), False


def problems(line: int, text: str, docstring: bool) -> Iterator[str]:
    """Yield the problems with the words of a text."""
    first = re.match(r"\s*(\w+)", text)
    if docstring and first and first.group(1) in FIRST:
        yield f"{line}: begins with {first.group(1)!r}; say what it does (Return ...) or is"
    words = re.findall(r"[a-z]+", re.sub(r"``[^`]*``|`[^`]*`", "", text).lower())
    for word in sorted(set(words) & set(TERMS)):
        yield f"{line}: {word!r}; write {TERMS[word]!r}"


@pytest.mark.parametrize(
    "package",
    [
        *sorted(f"mipcash/{p.name}" for p in (ROOT / "mipcash").iterdir() if (p / "__init__.py").exists()),
        "benchmarks",
        "tests",
    ],
)
def test_docstrings_and_comments_use_the_terms_of_the_field(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{problem}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for entry in texts(path)
        for problem in problems(*entry)
    ]
    assert found == []


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page, without code, tables and headings."""
    plain = re.sub(r"```.*?```", "", page, flags=re.S)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )", plain):
        if block.lstrip().startswith(("|", "#", "!", ":::", "<")):
            continue
        yield from re.split(r"(?<=[.?!:])\s+", " ".join(block.split()))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_sentences_of_the_pages_can_be_read_at_once(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [s for s in sentences(text) if len(s.split()) > LONGEST] == []


def test_a_text_in_old_words_is_found() -> None:
    assert list(problems(1, "Whether a helper stands.", True)) == [
        "1: begins with 'Whether'; say what it does (Return ...) or is"
    ]
    assert list(problems(1, "Nobody told it; see ``helpers``.", False)) == ["1: 'nobody'; write 'name the subject'"]
    assert list(sentences("One two. Three: four.\n\n```\nx. y\n```\n\n* five")) == [
        "One two.",
        "Three:",
        "four.",
        "* five",
    ]
