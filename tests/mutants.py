"""Mutation testing: ``python -m tests.mutants --sample 100`` changes the program at random places and tests it.

cosmic-ray makes the mutants of the last commit (`pip install cosmic-ray pytest-cov`), without its operators for `|`, since they
change type annotations, and those that make `==` of `is` or the reverse, since the objects compared are mostly constants. A mutant
dies if a test fails or takes much longer than before. Its tests are those that reach the changed statement: of the same folder,
then of others, fastest first, up to `CAP` seconds. What only another test would notice counts as survived. This module is also
the plugin of those runs of pytest.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import queue
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import Phase, settings

FOLDERS = ("program", "space", "acquisition", "study")
TESTS = "program space modelling backends acquisition surrogates optimizers conformance study cli integrations report"
OTHERS = ("tests/test_security.py", "tests/test_names.py")
READING = "tests/test_names.py::test_dataclasses_other_than_states_are_frozen"
"""A test that reads the source, and so reaches every line."""
CAP = 150
MEMORY = 6 << 30
CONFIG = """[cosmic-ray]
module-path = [{paths}]
timeout = 1
excluded-modules = []
test-command = ""
[cosmic-ray.distributor]
name = "local"
"""
LEFT_OUT = ("%BitOr%", "%Eq_Is", "%Is_Eq", "%NotEq_IsNot", "%IsNot_NotEq")


def pytest_configure(config: pytest.Config) -> None:
    """Fail at the first example, since a smaller one is of no use here, and where a mutant without an end fills the memory."""
    if "MIPCASH_TESTS" in os.environ:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    settings.register_profile("mutants", parent=settings.default, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutants")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that the file `MIPCASH_TESTS` names, in its order."""
    if "MIPCASH_TESTS" in os.environ:
        order = {name: n for n, name in enumerate(json.loads(Path(os.environ["MIPCASH_TESTS"]).read_text("utf-8")))}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


SECONDS: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of a test; those of a test that fails are not a number."""
    SECONDS[report.nodeid] = SECONDS.get(report.nodeid, 0.0) + (math.nan if report.failed else report.duration)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the seconds of all tests to the file `MIPCASH_SECONDS`."""
    if "MIPCASH_SECONDS" in os.environ and not hasattr(session.config, "workerinput"):
        Path(os.environ["MIPCASH_SECONDS"]).write_text(json.dumps(SECONDS), encoding="utf-8")


@dataclass(frozen=True)
class Mutant:
    """Change `occurrence` of an operator of cosmic-ray in a module, and the row where it begins."""

    module: str
    operator: str
    occurrence: int
    row: int

    def code(self, source: str) -> str | None:
        """The changed source; None where the operator finds nothing to change."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        changed = mutate_code(source, get_operator(self.operator)(), self.occurrence)
        return None if changed is None else str(changed)


def run_tests(
    clone: Path, *arguments: str, seconds: float | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a clone with this module as a plugin."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(clone), **variables}
    return subprocess.run(
        command, cwd=clone, env=environment, timeout=seconds, check=False, capture_output=True, text=True
    )


def measure(clone: Path, folder: Path, workers: int) -> None:
    """Write the seconds of each test and the lines that it reaches to a folder."""
    variables = {"MIPCASH_SECONDS": str(folder / "seconds.json"), "COVERAGE_FILE": str(folder / "coverage")}
    tests = [*(f"tests/{name}" for name in TESTS.split()), *OTHERS]
    coverage = ["--cov=mipcash", "--cov-context=test", "--cov-report="]
    done = run_tests(clone, *tests, *coverage, "-n", str(workers), "--dist", "worksteal", **variables)
    if done.returncode not in (0, 1):
        raise SystemExit(f"the tests cannot be run:\n{done.stdout[-3000:]}")


def statement(source: str, row: int) -> range:
    """Lines whose execution reaches a row: its statement, the head of one with a body, the whole function of a signature."""
    found = ast.parse(source)
    lines = range(1, source.count("\n") + 2)
    for node in ast.walk(found):
        if isinstance(node, ast.stmt) and node.lineno <= row <= (node.end_lineno or row):
            body = getattr(node, "body", None)
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                lines = range(node.lineno, (node.end_lineno or row) + 1)
            elif body and row < body[0].lineno:
                return range(node.lineno, body[0].lineno)
            elif not body:
                inside = lines.start > 1
                return range(node.lineno, (node.end_lineno or row) + 1) if inside else lines
    return lines


class Tests:
    """Tests by the lines that they reach, and their seconds."""

    def __init__(self, folder: Path, clone: Path) -> None:
        from coverage import CoverageData

        seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text("utf-8"))
        self.seconds = {name: value for name, value in seconds.items() if not math.isnan(value)}
        print("left out, since they fail without a change:", sorted(seconds.keys() - self.seconds.keys()), flush=True)
        self.data = CoverageData(str(folder / "coverage"))
        self.data.read()
        self.clone = clone

    def of(self, mutant: Mutant, source: str) -> list[str]:
        """Names of the tests of a mutant, the fastest first."""
        contexts = self.data.contexts_by_lineno(str(self.clone / mutant.module))
        lines = statement(source, mutant.row)
        names = {name.rpartition("|")[0] for line in lines for name in contexts.get(line, ())} & self.seconds.keys()
        if not names:
            names = {name.rpartition("|")[0] for line in contexts for name in contexts[line]} & self.seconds.keys()
        near = f"tests/{Path(mutant.module).parts[1]}/"
        kept, spent = list[str](), 0.0
        for name in sorted(names, key=lambda name: (not name.startswith(near), self.seconds[name], name)):
            spent += self.seconds[name]
            if spent > CAP:
                break
            kept.append(name)
        return [READING, *sorted(set(kept) - {READING}, key=lambda name: (self.seconds[name], name))]


def parts(tests: list[str]) -> Iterator[list[str]]:
    """A few tests first, since most mutants die at once."""
    yield tests[:25]
    if tests[25:]:
        yield tests[25:]


def killed(mutant: Mutant, clone: Path, tests: Tests) -> tuple[bool, int]:
    """Return True if a test notices a mutant, and the number of its tests."""
    path = clone / mutant.module
    source = path.read_text("utf-8")
    names = tests.of(mutant, source)
    listed = clone / "tests.json"
    try:
        path.write_text(mutant.code(source) or source, encoding="utf-8")
        for part in parts(names):
            listed.write_text(json.dumps(part), encoding="utf-8")
            files = sorted({name.partition("::")[0] for name in part})
            seconds = 60 + 3 * sum(tests.seconds[name] for name in part)
            try:
                done = run_tests(clone, "-x", *files, seconds=seconds, MIPCASH_TESTS=str(listed))
            except subprocess.TimeoutExpired:
                return True, len(names)
            if done.returncode in (4, 5):  # pytest could not run these tests
                raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
            if done.returncode:
                return True, len(names)
        return False, len(names)
    finally:
        path.write_text(source, encoding="utf-8")


def sample(clone: Path, folder: Path, count: int, seed: int) -> list[Mutant]:
    """Some of all mutants, drawn at random."""
    session, config = folder / "session.sqlite", folder / "config.toml"
    config.write_text(CONFIG.format(paths=", ".join(f'"mipcash/{name}"' for name in FOLDERS)), encoding="utf-8")
    subprocess.run([Path(sys.executable).with_name("cosmic-ray"), "init", config, session], check=True, cwd=clone)
    with sqlite3.connect(session) as found:
        left_out = " OR ".join(f"operator_name LIKE '{pattern}'" for pattern in LEFT_OUT)
        columns = "module_path, operator_name, occurrence, start_pos_row"
        query = f"SELECT {columns} FROM mutation_specs WHERE NOT ({left_out}) ORDER BY {columns}"
        mutants = [Mutant(*row) for row in found.execute(query)]
    print(f"{count} of {len(mutants)} mutants", flush=True)
    return random.Random(seed).sample(mutants, min(count, len(mutants)))


def difference(mutant: Mutant, clone: Path) -> str:
    """The changed lines of a mutant."""
    before = (clone / mutant.module).read_text("utf-8")
    pairs = zip(before.splitlines(), (mutant.code(before) or before).splitlines(), strict=False)
    old, new = next(((a, b) for a, b in pairs if a != b), ("", ""))
    return f"{mutant.module}:{mutant.row}\n  - {old.strip()}\n  + {new.strip()}"


def main() -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        clones: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for n in range(options.workers):
            subprocess.run(["git", "clone", "-q", ".", folder / f"{n}"], check=True)
            clones.put(folder / f"{n}")
        first = folder / "0"
        measure(first, folder, options.workers)
        tests = Tests(folder, first)

        def tried(mutant: Mutant) -> bool:
            clone = clones.get()
            try:
                dead, count = killed(mutant, clone, tests)
                if not dead:
                    print(f"survived {count} tests: {difference(mutant, clone)}", flush=True)
                return dead
            finally:
                clones.put(clone)

        with ThreadPoolExecutor(options.workers) as pool:
            results = list(pool.map(tried, sample(first, folder, options.sample, options.seed)))
        print(f"{sum(results)} of {len(results)} mutants die")
    return 0


if __name__ == "__main__":
    sys.exit(main())
