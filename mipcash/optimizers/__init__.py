"""The optimizers of the core: the protocol, ``hybrid`` (the default), ``mutation`` and ``random``.

Read in this order:

    optimizer      Request, Proposal and the Optimizer protocol: ask and recommend
    outcome, data  the outcome of a trial, and the observations as a model learns from them
    model_based    what optimizers with a model share: derive from it to write your own
    mutation       the shortest example
    hybrid         the default;   turns, refining   its schedule while the incumbent does not improve
    registry       optimizers by name, and entry points of other packages
    decoupled, pending, noise, scalarising, safety    features of the default, one file each

The published methods are packages of :mod:`mipcash.methods`.
"""
