"""Conversion between objects of a space and an optimizer and the texts and numbers of a storage."""
