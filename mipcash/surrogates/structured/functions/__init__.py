"""Functions over mixed spaces that the structured posterior returns: its mean, its samples, and the parts of both."""
