"""Bridges to the outside: the command line, model files, pictures."""
