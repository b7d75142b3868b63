"""How an objective gets to the processes of an executor, and what is said where it does not.

Whether it can be pickled is found out before anything is proposed. Dask is given it as bytes: a worker that cannot import a module
of what it is sent would lose its connection again and again, and nobody would be told; so it is unpickled where its error is heard.
"""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from typing import Any

import cloudpickle

from mipcash.errors import ObjectiveError
from mipcash.study.evaluating.evaluation import Evaluation, Objective, evaluate
from mipcash.study.reading import describe_error
from mipcash.study.text import shown

CURE = (
    "Define it at the top of a module that the processes can import (no lambda, and no function inside a function), and leave out "
    "of it what is open here: files, connections, locks; or give the evaluations threads, workers= without executor=. "
    "evaluation_timeout= brings lambdas and functions of notebooks to processes of its own"
)


def check_sendable(objective: Objective, executor: Any) -> None:
    """Pickle the objective as an executor will.

    Raises:
        ObjectiveError: that fails, or what arrives could not be imported there.
    """
    pickles = _pickles(executor)
    if pickles is None:
        return
    try:
        pickles(objective)
    except Exception as error:
        raise ObjectiveError(unsendable(objective, error)) from error
    if isinstance(executor, ProcessPoolExecutor) and not _imported_again(objective, executor):
        raise ObjectiveError(
            f"the objective {shown(objective)} is of an interactive session, which the executor's processes cannot import. {CURE}"
        )


def parcel(objective: Objective, told: Any = None) -> bytes:
    """What is sent as bytes.

    Raises:
        ObjectiveError: it cannot be pickled.
    """
    try:
        text: bytes = cloudpickle.dumps(objective if told is None else told)
    except Exception as error:
        raise ObjectiveError(unsendable(objective, error)) from error
    return text


def evaluate_parcels(objective: bytes, told: bytes) -> Evaluation:
    """:func:`mipcash.study.evaluating.evaluation.evaluate` of what :func:`parcel` made.

    Raises:
        ObjectiveError: it cannot be loaded in this process.
    """
    try:
        function, arguments = _opened(objective), pickle.loads(told)
    except Exception as error:
        raise ObjectiveError(
            f"the objective cannot be loaded in the executor's process: {describe_error(error)}. Put its module where the workers "
            "can import it (Dask: client.upload_file('my_module.py')), or define it in the script itself"
        ) from None
    return evaluate(function, *arguments)


@lru_cache(maxsize=4)
def _opened(objective: bytes) -> Any:
    return pickle.loads(objective)


def unsendable(objective: Objective, error: BaseException) -> str:
    """That an executor cannot send an objective, and the cure."""
    return f"the objective {shown(objective)} cannot be sent to the processes of executor=: {describe_error(error)}. {CURE}"


def _pickles(executor: Any) -> Any:
    """What an executor pickles with; None: nothing is, or not by what is known here."""
    if isinstance(executor, ProcessPoolExecutor):
        return pickle.dumps
    if str(type(executor).__module__).split(".")[0] == "mpi4py":
        return sys.modules["mpi4py.MPI"].pickle.dumps
    return None


def _imported_again(objective: Objective, executor: ProcessPoolExecutor) -> bool:
    """Whether a process that does not begin as a copy of this one finds the objective; it runs the script again for that."""
    context = getattr(executor, "_mp_context", None) or multiprocessing
    of_session = getattr(objective, "__module__", None) == "__main__" and not hasattr(
        sys.modules["__main__"], "__file__"
    )
    return context.get_start_method() == "fork" or not of_session
