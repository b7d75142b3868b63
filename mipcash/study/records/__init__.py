"""Between what a space and an optimizer say and the texts and numbers that a storage holds."""
