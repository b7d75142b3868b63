"""Other libraries' methods that take limits, as methods of the peers benchmark."""
