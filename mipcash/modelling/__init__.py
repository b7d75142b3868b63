"""The modelling language: parameters, conditions and rules on one live Pyomo model, and the check of a configuration.

Read in this order:

    domains, parameters    Values of a parameter, and the objects that ``Space.real`` and similar methods return.
    indicators, formulas   ``act["relu"]`` and logic over rules.
    quadratic, rules       Relations of degree at most two, analysed and checked.
    conditions             ``when=`` as a normal form over indicators.
    declaration            All declarations, with the Pyomo model that holds them.
    portable               A declaration as JSON, as journals hold it.
    validation             Legality of a configuration, from the declared rules alone.
    live/                  Rules written on the Pyomo model itself.

This package imports no other subpackage of mipcash. The modules wording and refusals make the error messages that quote an
expression.
"""
