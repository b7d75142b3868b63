"""Runs: propose, evaluate, record, resume.

Read in this order:

    minimize       a run as one call: which source, pool and policies its loop has
    loop           the loop;   sources    where its trials come from;   policies/   why it waits or ends, a module each
    study          ``ask`` and ``tell`` by hand, composed of
                   table, proposer, queue    trials in step with the storage; questions to the optimizer; which trial is next
    trial, result  one evaluation; what a run found
    records/       between configurations and the rows of a storage;   storage/   memory, SQLite, PostgreSQL
    evaluating/    calls of the objective in threads, processes and executors
    execution, method, spending, pruning, confirm    what a run is given, an argument each
    standing, tradeoffs, front    outcome constraints and several objectives
"""
