"""The structured kernel: effects, pairs and products, with a residual."""
