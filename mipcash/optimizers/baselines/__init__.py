"""Methods that others are compared with."""
