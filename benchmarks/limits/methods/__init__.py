"""Other libraries' methods for outcome constraints, as methods of the peers benchmark."""
