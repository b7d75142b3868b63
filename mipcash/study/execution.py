"""``execution=``: where and how evaluations run."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from mipcash.study.arguments import retries_of
from mipcash.study.evaluating.allowed import Allowed
from mipcash.study.evaluating.pool import Executors
from mipcash.study.text import shown


@dataclass(frozen=True)
class Execution:
    """Where and how evaluations run: ``mc.minimize(..., execution=mc.Execution(workers=4, evaluation_timeout=60))``.

    Attributes:
        workers: evaluations at a time, in threads. With one, runs of the same seed are the same; with more, the order in which
            evaluations end decides what the optimizer knows when.
        executor: any ``concurrent.futures.Executor`` to evaluate in instead of threads, ``workers`` at a time; it is not shut
            down. Or a callable that makes one, such as ``lambda: ProcessPoolExecutor(4)``: then one that breaks is replaced. With
            processes the objective must be importable.
        retries: further attempts at an evaluation whose worker died while the run went on; after that it has failed. A trial
            that lost a worker is evaluated alone, so that none fails for another's fault. Where the whole run is killed, its
            evaluations are made again when it is resumed, and that costs no retry.
        evaluation_timeout: seconds after which an evaluation is ended and has failed; None: no limit. Evaluations run in
            ``workers`` processes of their own then, one at a time in each, that load the objective once (the time of that does
            not count); a process whose time is up is killed, with what the evaluation started. What the objective changes in this
            process's variables is not seen here.
        evaluation_memory: megabytes (of 10^6 bytes) beyond which an evaluation is ended in the same way; None: no limit. What its
            process and those that it started hold counts, with all that was loaded; looked at every 0.05 seconds, in which an
            evaluation may exceed it.

    Raises:
        ValueError: workers, retries, seconds or megabytes out of range; an executor beside ``evaluation_timeout`` or
            ``evaluation_memory``.
    """

    workers: int = 1
    executor: Executors = field(default=None, repr=False)
    retries: int = 2
    evaluation_timeout: float | None = None
    evaluation_memory: float | None = None

    def __post_init__(self) -> None:
        workers = self.workers
        if not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1:
            raise ValueError(f"workers must be a whole number, at least 1, got {shown(workers)}")
        retries_of(self.retries)
        _ = self.allowed

    @property
    def allowed(self) -> Allowed | None:
        """What an evaluation may take; None: nothing is limited."""
        return Allowed.of(self.evaluation_timeout, self.evaluation_memory, self.executor)


ExecutionGiven = int | Execution | None
"""What ``execution=`` takes: the settings, or a number of workers alone."""


def execution_of(given: Any) -> Execution:
    """Return the settings; of None the defaults.

    Raises:
        ValueError: neither settings nor a number of workers.
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
