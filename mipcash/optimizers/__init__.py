"""The optimizers of the core: the protocol, ``hybrid`` (the default), ``mutation`` and ``random``.

Read in this order:

    optimizer      Request, Proposal and the Optimizer protocol: ask and recommend.
    outcome, data  The outcome of a trial, and the observations as training data of a model.
    model_based    The base class of optimizers with a model. Derive from it to write your own.
    mutation       The shortest example.
    hybrid         The default.
    registry       Optimizers by name, and entry points of other packages.
    decoupled, pending, noise, prior, safety    Features of the default, one file each.
    objectives, scalarising, pareto, multi_fidelity    Several objectives, and fidelities.

in_time has the proposals of the solver, loss_model a model for analysis, violations the scale of outcome constraints, unit_cube a
mixed space as a cube.

The published methods are packages of ``mipcash.methods``.
"""
