"""The public ``Space``, and every question that a solver answers about it.

Read in this order:

    space          Space: declarations and questions; each question is a module of its own name below
    compiled       a declared space with its program, as of the last look at the live model
    domain         a compiled space with a solver: the way between configurations and points, used by all optimizers
    minimiser      incumbent first, proof second, over one program
    optimum, bounds, nearest, counting, conflict, sampling, design    the questions
    numbers/       the legal set of the numbers beside fixed levels

The rooms above import domain, exclusion, solution and the public class.
"""
