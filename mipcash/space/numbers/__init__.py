"""What rules leave for the numbers beside given levels: a union of parts, drawn from and walked over."""
