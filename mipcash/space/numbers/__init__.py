"""The legal set of the numerical parameters at given levels: a union of parts, sampled and walked over."""
