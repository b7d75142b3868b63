"""Functions over mixed spaces that the structured posterior hands out: its mean and its samples, and what they are made of."""
