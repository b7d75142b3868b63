"""The public space: what a solver makes of a declaration, and the questions that only a solver answers."""
