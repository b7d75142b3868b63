"""Converters from spaces of other libraries, and back if the other library can express the space."""
