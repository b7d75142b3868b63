"""The journal as a SQLite file: its tables, its one writer, its readers, and how earlier formats are read."""
