"""What a live Pyomo model may hold, and how its variables, sets and logic are taken over."""
