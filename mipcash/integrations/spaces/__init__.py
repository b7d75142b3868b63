"""Spaces of other libraries, declared as spaces of mipcash, and back where theirs can say it."""
