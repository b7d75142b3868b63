"""Run a study in its own process: ``run_tiny.py JOURNAL BUDGET [--optimizer N] [--how H] [--die WHERE K] [--slow S]``.

Print ``trial <number> <exact config>`` per evaluation. With ``--die`` the process sends SIGKILL to itself at trial K:
``ask`` (during the proposal), ``insert`` (inside the write before the evaluation), ``evaluation``, ``outcome`` (inside
the write after it) or ``told`` (after that write). ``--how processes`` evaluates in worker processes, ``--how shared``
shares the journal. In both cases the process of the run dies.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from typing import Any

import tiny

from mipcash.study.execution import Execution
from mipcash.study.minimize import minimize
from mipcash.study.records.encoding import encode_config
from mipcash.study.storage.sql import SQLStorage
from mipcash.study.storage.sqlite import read_journal


def die(process: int | None = None) -> None:
    os.kill(process or os.getpid(), signal.SIGKILL)


def die_in_write(method: str, number: int) -> None:
    """Make the process kill itself between a statement of the journal and its COMMIT."""
    original = getattr(SQLStorage, method)

    def deadly(self: SQLStorage, *arguments: Any) -> None:
        if arguments[0].number == number:
            self._database._connection.set_trace_callback(lambda statement: die() if statement == "COMMIT" else None)
        original(self, *arguments)

    setattr(SQLStorage, method, deadly)


def main() -> None:
    # a shell that starts tests in the background ignores SIGINT, and child processes inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("journal")
    parser.add_argument("budget", type=int)
    parser.add_argument("--optimizer", default="Sampler")
    parser.add_argument("--die", nargs=2, default=["", "-1"])
    parser.add_argument("--how", default="alone")
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--known", type=int, default=0)
    options = parser.parse_args()
    where, at = options.die[0], int(options.die[1])
    space = tiny.tiny_space()
    optimizer = getattr(tiny, options.optimizer)(space)
    if where in ("insert", "outcome"):
        die_in_write({"insert": "insert", "outcome": "write"}[where], at)
    if where == "ask":
        propose = optimizer.propose
        optimizer.propose = lambda request: die() if len(request.history) == at else propose(request)
    evaluations: list[str] = []
    run = os.getpid()

    def objective(config: dict[str, Any]) -> float:
        exact = encode_config(space, config)
        print(f"evaluating {exact}", flush=True)
        time.sleep(options.slow)
        if where == "evaluation" and config["rounds"] == target(options.journal, at):
            die(run)
            time.sleep(60)  # in a worker process, the evaluation outlives its run for a moment
        evaluations.append(exact)
        return tiny.loss(config)

    def told(study: Any, trial: Any) -> None:
        print(f"trial {trial.number} {encode_config(space, trial.config)}", flush=True)
        if where == "told" and trial.number == at:
            die()

    minimize(
        objective,
        space,
        options.budget,
        optimizer=optimizer,
        seed=7,
        storage=f"sqlite:///{options.journal}" if options.how == "shared" else options.journal,
        execution=Execution(evaluation_timeout=60.0 if options.how == "processes" else None),
        callbacks=[told],
        known=tiny.known(space, options.known),
        progress=False,
    )
    print("finished", flush=True)


def target(journal: str, number: int) -> int:
    """Return the value of ``rounds`` in trial ``number``, or -1 while that trial is not the latest."""
    rows = read_journal(journal)[1]
    return json.loads(rows[number].exact)["rounds"] if len(rows) == number + 1 else -1


if __name__ == "__main__":
    main()
