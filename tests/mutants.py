"""Mutation testing: ``python -m tests.mutants --sample 40`` changes the program at random places and runs the tests of its folder.

cosmic-ray makes the mutants in a clone of the last commit. Its operators for `|` are left out, since they change type annotations,
and those that make `==` of `is` or the reverse, since the objects compared are mostly constants.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = {
    "program": "tests/program tests/space tests/modelling tests/backends",
    "space": "tests/space tests/modelling tests/program tests/conformance tests/study/test_minimize.py",
    "acquisition": "tests/acquisition tests/optimizers tests/conformance",
    "study": "tests/study tests/cli tests/test_security.py",
}
"""Folder of ``mipcash/`` -> its tests, the likeliest to notice a change first."""
CONFIG = """[cosmic-ray]
module-path = [{paths}]
timeout = 1800
excluded-modules = []
test-command = "{python} -m tests.mutants --test"
[cosmic-ray.distributor]
name = "local"
"""


def test() -> int:
    """Run the tests of the folder of the file that is changed in this clone."""
    changed = subprocess.run(
        ["git", "diff", "--name-only"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    folder = next(Path(name).parts[1] for name in changed if name.startswith("mipcash/"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *TESTS[folder].split()]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(Path.cwd())}, check=False).returncode


def sample(session: Path, count: int, seed: int) -> None:
    """Keep some mutants of a session of cosmic-ray, drawn at random."""
    with sqlite3.connect(session) as found:
        order = "module_path, start_pos_row, start_pos_col, operator_name, occurrence"
        left_out = "operator_name LIKE '%BitOr%' OR operator_name LIKE '%Eq_Is' OR operator_name LIKE '%Is_Eq'"
        left_out += " OR operator_name LIKE '%NotEq_IsNot' OR operator_name LIKE '%IsNot_NotEq'"
        query = f"SELECT job_id FROM mutation_specs WHERE NOT ({left_out}) ORDER BY {order}"
        jobs = [job for (job,) in found.execute(query)]
        kept = random.Random(seed).sample(jobs, min(count, len(jobs)))
        print(f"{len(kept)} of {len(jobs)} mutants")
        for table in ("mutation_specs", "work_items"):
            found.execute(f"DELETE FROM {table} WHERE job_id NOT IN ({','.join('?' * len(kept))})", kept)


def main() -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--test", action="store_true", help="run the tests of the changed folder; for cosmic-ray")
    options = parser.parse_args()
    if options.test:
        return test()
    with tempfile.TemporaryDirectory() as made:
        clone, session, config = Path(made) / "clone", Path(made) / "session.sqlite", Path(made) / "config.toml"
        subprocess.run(["git", "clone", "-q", ".", clone], check=True)
        paths = ", ".join(f'"mipcash/{name}"' for name in TESTS)
        config.write_text(CONFIG.format(paths=paths, python=sys.executable), encoding="utf-8")
        subprocess.run(["cosmic-ray", "init", config, session], check=True, cwd=clone)
        sample(session, options.sample, options.seed)
        subprocess.run(["cosmic-ray", "exec", config, session], check=True, cwd=clone)
        subprocess.run(["cr-report", "--show-diff", "--surviving-only", session], check=True, cwd=clone)
    return 0


if __name__ == "__main__":
    sys.exit(main())
