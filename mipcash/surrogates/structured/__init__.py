"""The structured kernel: effects, pairs and products, with a residual.

Read in this order:

structure, encoded  the space and its points
kernel              the kernel, with ``number_sums``
evidence            its hyperparameters, with ``training_tables``, ``number_pairs`` and ``pair_sums``
posterior           predictions and samples
warping, surrogate  the scale of the losses, and the schedule of fits
functions/          what the posterior returns
"""
