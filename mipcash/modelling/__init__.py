"""The language of spaces: parameters, conditions and rules on one live Pyomo model, and the check of a configuration against them.

Read in this order:

    domains, parameters    values of a parameter, and what ``Space.real`` and its like return
    indicators, formulas   ``act["relu"]`` and logic over rules
    quadratic, rules       relations of degree at most two, taken apart and checked
    conditions             ``when=`` as a normal form over indicators
    declaration            everything that was declared, with the Pyomo model that holds it
    validation             legality of a configuration, from the declared rules alone
    live/                  rules written on the Pyomo model itself

The room imports no other room. Errors that quote an expression are made in wording and refusals.
"""
