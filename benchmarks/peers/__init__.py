"""The peers benchmark: optimizers of other libraries against ours, on mixed spaces with and without rules."""
