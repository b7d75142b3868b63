"""Runs of a study: propose, evaluate, record, resume.

The modules, in a good order to read them:

    minimize       a run as one call; it chooses the source, pool and policies of its loop.
    loop           the loop;   sources    origin of its trials;   policies/   decide when it waits or ends, a module each.
    study          ``ask`` and ``tell`` by hand, composed of
                   table, proposer, queue    trials in step with the storage; calls of the optimizer; which trial is next.
    trial, result  one evaluation; the outcome of a run.
    records/       conversion between objects and the rows of a storage;   storage/   memory, SQLite, PostgreSQL.
    evaluating/    calls of the objective in threads, processes and executors.
    execution, method, spending, pruning, confirm    the arguments of a run, a module each.
    feasibility, tradeoffs, front  outcome constraints and several objectives.
    reading, signatures, folds, reports    outcomes and calls of an objective, and its intermediate results.
    finalists, replication, unreturned, failures    repeats, and what goes wrong.
    progress       displays of a run.
"""
