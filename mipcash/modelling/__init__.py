"""What a user declares: parameters, conditions and rules on one live Pyomo model, and validation at natural values."""
