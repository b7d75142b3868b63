"""The optimizers of the core: the protocol, ``hybrid`` (the default), ``mutation`` and ``random``.

Read in this order:

    optimizer      Request, Proposal and the Optimizer protocol: ask and recommend.
    outcome, data  The outcome of a trial, and the observations as training data of a model.
    model_based    The base class of optimizers with a model. Derive from it to write your own.
    mutation       The shortest example.
    hybrid         The default.
    registry       Optimizers by name, and entry points of other packages.
    decoupled, pending, noise, scalarising, safety    Features of the default, one file each.

The published methods are packages of ``mipcash.methods``.
"""
