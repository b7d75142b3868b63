"""Conversion between objects of a space and an optimizer and the texts and numbers of a storage.

Read in this order:

encoding                configurations and settings as JSON
trials                  trials and proposals
telling                 an outcome that is told
given, tables           evaluations made elsewhere
limits, directions      outcome constraints and objectives
fingerprint, objective  the identity of a space and of an objective
"""
