"""The structured kernel: effects, pairs and products, with a residual.

Read in this order:

structure, encoded  the space and its points
kernel              the kernel
evidence            its hyperparameters, with ``training_tables`` and ``number_pairs``
posterior           predictions and samples
warping, surrogate  the scale of the losses, and the schedule of fits
functions/          what the posterior returns
"""
