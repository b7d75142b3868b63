"""Bridges to other libraries: what is theirs becomes an objective, and what was found becomes theirs again."""
