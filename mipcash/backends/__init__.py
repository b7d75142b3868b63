"""Solvers behind one contract: minimise a quadratic form over a program, with a proof.

Read in this order:

    task           Task, Answer and the Backend protocol: all that the other rooms use, beside registry
    registry       solvers by name; a profile (profiles, solvers/*.toml) says how one is driven
    highs          the default solver;   pyomo/ those that Pyomo drives;   toulbar2/ cost function networks
    certificate    every answer is checked against the rows, and repaired or excluded
    spatial        products of two reals by branch and bound
    portfolio      ``solver="auto"``: enumeration/ first, then a solver
    reductions/    one reformulation per file, each with its way back;   heuristics/ incumbents without proof
"""
