"""ADMM for the choice of algorithms with their hyperparameters (liu2020, ram2020)."""
