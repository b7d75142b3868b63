"""ADMMBO: limits by the alternating direction method of multipliers, every subproblem by Bayesian optimization (ariafar2019)."""
