"""Components of a live Pyomo model, and the adoption of its variables, sets and logic."""
