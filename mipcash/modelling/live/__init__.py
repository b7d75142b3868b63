"""Components of a live Pyomo model, and the adoption of its variables, sets and logic.

Read in this order:

adoption           an existing model as a space
components         what is supported, without meaning, or refused
value_sets, holes  values of variables
special_sets       special ordered sets
derived, parts     the rules and state that these leave in a declaration
"""
