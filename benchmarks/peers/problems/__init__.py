"""The problems of the peers benchmark: modules that list theirs in ``PROBLEMS``."""
