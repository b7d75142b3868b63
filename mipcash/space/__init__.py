"""The public ``Space`` and the questions about it that a solver answers.

Read in this order:

    space          ``Space``: declarations and questions. Each question has a module of its own, named below.
    compiled       A declared space with its program, as of the last time the live model was inspected.
    domain         A compiled space with a solver. It converts between configurations and points. All optimizers use it.
    minimiser      Minimisation over one program: first an incumbent, then the proof of optimality.
    optimum, bounds, nearest, counting, conflict, sampling, design    The questions.
    explanation, forced, experiments, novelty    Parts of their answers.
    exchange, live_model, direction    Spaces of other libraries; changes of the Pyomo model; directions.
    numbers/       The legal set of the numerical parameters at fixed levels.

Packages that build on this one import domain, exclusion, solution and the public class.
"""
