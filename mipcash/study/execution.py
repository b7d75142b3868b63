"""``execution=``: where and how evaluations run."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from mipcash.study.arguments import whole_number
from mipcash.study.evaluating.allowed import Allowed
from mipcash.study.evaluating.pool import Executors
from mipcash.text import shown


@dataclass(frozen=True)
class Execution:
    """Settings for where and how evaluations run: ``mc.minimize(..., execution=mc.Execution(workers=4, evaluation_timeout=60))``.

    Args:
        workers: number of concurrent evaluations, in threads. With one worker, runs with the same seed are identical. With more,
            the order in which evaluations end affects the proposals.
        executor: any ``concurrent.futures.Executor`` to evaluate in instead of threads, ``workers`` at a time; it is not shut down.
            Or a callable that makes one, such as ``lambda: ProcessPoolExecutor(4)``; an executor that breaks is then replaced. With
            processes the objective must be importable.
        retries: further attempts at an evaluation whose worker died during the run; after that it has failed. A trial that lost a
            worker is evaluated alone, so that it cannot make other trials fail. If the whole run is killed, its unfinished
            evaluations are repeated on resume without using a retry.
        evaluation_timeout: seconds after which an evaluation is stopped and counts as failed; None: no limit. Evaluations then run
            in ``workers`` separate processes, one at a time in each. A process loads the objective once, and the loading time does
            not count. On timeout the process is killed, with all that the evaluation started. Changes that the objective makes to
            global variables stay in its process.
        evaluation_memory: megabytes (10^6 bytes) beyond which an evaluation is stopped in the same way; None: no limit. The memory
            of the process and its child processes counts, loaded modules included. It is checked every 0.05 seconds, and an
            evaluation may exceed it between checks.

    Raises:
        ValueError: workers, retries, seconds or megabytes are out of range, or an executor is combined with ``evaluation_timeout``
            or ``evaluation_memory``.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> execution = mc.Execution(workers=2, retries=0)
        >>> run = mc.minimize(lambda c: c["a"], space, 4, optimizer="random", execution=execution, progress=False)
        >>> run.n_done
        4
    """

    workers: int = 1
    executor: Executors = field(default=None, repr=False)
    retries: int = 2
    evaluation_timeout: float | None = None
    evaluation_memory: float | None = None

    def __post_init__(self) -> None:
        whole_number("workers", self.workers, 1)
        whole_number("retries", self.retries, 0)
        _ = self.allowed

    @property
    def allowed(self) -> Allowed | None:
        """Limits on time and memory of one evaluation; None if there are none."""
        return Allowed.of(self.evaluation_timeout, self.evaluation_memory, self.executor)


ExecutionGiven = int | Execution | None
"""Type of ``execution=``: the settings, or just a number of workers."""


def execution_of(given: Any) -> Execution:
    """Return the settings given as ``execution=``; the defaults for None.

    Raises:
        ValueError: the argument is neither settings nor a number of workers.
    """
    if given is None:
        return Execution()
    if isinstance(given, Execution):
        return given
    if isinstance(given, Integral) and not isinstance(given, bool):
        return Execution(workers=int(given))
    raise ValueError(
        f"execution must be a number of workers, or mc.Execution(workers=4, evaluation_timeout=60); got {shown(given)}"
    )
