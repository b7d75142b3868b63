"""Functions over mixed spaces that the structured posterior returns.

Read in this order:

surface               the mean or a sample, which a MIP can minimise
form_parts, sections  at fixed numbers, and at fixed binaries
prior_draw            a draw from the prior
"""
