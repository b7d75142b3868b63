"""The journal as a SQLite file: its tables, its one writer and its readers."""
