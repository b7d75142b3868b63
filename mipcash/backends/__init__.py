"""Solvers behind one interface: minimise a quadratic form over a program, with a proof.

Read in this order:

    task           Task, Answer and the Backend protocol: with registry, all that other packages use.
    registry       solvers by name; a profile (profiles, solvers/*.toml) describes how to call a solver.
    highs          the default solver;   pyomo/ solvers called through Pyomo;   toulbar2/ cost function networks.
    certificate    checks every answer against the rows, and repairs or excludes it.
    spatial        spatial branch and bound for products of two reals.
    portfolio      ``solver="auto"``: enumeration/ first, then a solver.
    timed, silent  a deadline for many solves; HiGHS without output;   polytope   small linear programs over numbers.
    reductions/    one reformulation per file, each with its inverse;   heuristics/ incumbents without proof.
"""
