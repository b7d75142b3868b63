"""Runs: propose, evaluate, record, resume.

Read in this order:

    minimize       the run as one call;   loop   its loop, and why it ends
    study          ``ask`` and ``tell`` by hand; proposing, reporting and repeating are its parts
    trial, result  one evaluation; what a run found
    records/       between configurations and the texts of a storage;   storage/   memory, SQLite, PostgreSQL
    evaluating/    calls of the objective in threads, processes and executors
    racing, confirm, replication, spending    pruning, confirmation, repeats and budgets
    standing, tradeoffs, front    outcome constraints and several objectives
"""
