"""The legal set of the numerical parameters at given levels: a union of parts, sampled and walked over.

Read in this order:

part           the rules of one part
assembly       the parts at given levels
legal_numbers  their union
lattice        moves that keep equations
"""
