"""Data of the pictures, shared by the HTML page and the matplotlib axes.

Read in this order:

run                           the subject of a report
convergence, front, limits    evaluations
effects, slices, coordinates  the model of the loss, over ``box`` and ``settings``
solving                       seconds and gaps of proposals
"""
