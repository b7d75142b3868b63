"""Run a study whose evaluations run in the ranks of an MPI job.

Start it with ``mpiexec -n 3 python -m mpi4py.futures run_mpi.py JOURNAL``.
"""

from __future__ import annotations

import os
import sys

import tiny
from mpi4py.futures import MPIPoolExecutor
from test_executors import Once, minimize, overlap

from mipcash.study.storage.sqlite import read_journal


def main() -> None:
    space, journal = tiny.tiny_space(), sys.argv[1]
    with MPIPoolExecutor() as pool:
        result = minimize(Once(0.1), space, 4, pool, storage=journal)
        pids = {e.worker for row in read_journal(journal)[1] for e in row.evaluations}
        mine = any(w.endswith(f":{os.getpid()}") for w in pids)
        print(f"done {result.n_done}, workers {len(pids) - mine}, overlap {overlap(result)}", flush=True)
        print(f"inner {minimize(lambda config: 1.0, space, 2, pool).n_done}", flush=True)


if __name__ == "__main__":
    main()
