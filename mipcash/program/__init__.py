"""Compilation of a declaration to a mixed-integer program: one-hot binaries, sparse rows, products, and the unit scale of numbers.

Read in this order:

    program         ``BinaryProgram``: groups, numbers, rows, products; the notation of the whole engine; when a space is wide.
    algebra         Pyomo's model as polynomial rows, logic and disjunctions resolved.
    compile         The exact conversion of these rows to a program.
    forms, points   Quadratic forms over a program's columns; points of a space as arrays.
    unit_scale      Numbers on [0, 1], and their activity.
    legality        Vectorised legality of many points, for local search.

rewriting derives modified programs, moves and affine_rows serve local search. elimination, model_count and
rule_tables decide and count over finitely many states. recent is a cache.
"""
