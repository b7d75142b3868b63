"""toulbar2: a program as a cost function network.

Read in this order:

cost_network  the network
consistency   states without support
backend       the solver
"""
