"""A declaration compiled to a mixed-integer program: one-hot binaries, sparse rows, products, and the unit scale of numbers.

Read in this order:

    program         BinaryProgram: groups, numbers, rows, products; the notation of the whole engine
    algebra         Pyomo's model as polynomial rows, logic and disjunctions taken out
    compile         from those rows to a program, exactly
    forms, points   quadratic forms over a program's columns; points of a space as arrays
    unit_scale      numbers on [0, 1], and which of them are active
    legality        vectorised legality of many points, for local search

rewriting makes programs from programs. elimination, model_count and rule_tables decide and count over finitely many states.
"""
