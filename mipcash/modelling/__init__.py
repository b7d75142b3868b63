"""The modelling language: parameters, conditions and rules on one live Pyomo model, and the check of a configuration.

Read in this order:

    domains, parameters    Values of a parameter, and the objects that ``Space.real`` and similar methods return.
    indicators, formulas   ``act["relu"]`` and logic over rules.
    quadratic, rules       Relations of degree at most two, analysed and checked.
    conditions             ``when=`` as a normal form over indicators.
    operators, composed    Expressions of parameters, and their functions as rules of degree at most two.
    declaration            All declarations, with the Pyomo model that holds them.
    portable               A declaration as JSON, as journals hold it.
    validation             Legality of a configuration, from the declared rules alone.
    live/                  Rules written on the Pyomo model itself.

expectations, fidelity and auxiliary are parts of a declaration beside its rules; numbers, names, handles, clusters and sums are
small tools. The modules wording, refusals and asking make the error messages that quote an expression. This package imports no
other subpackage of mipcash.
"""
