"""Storages of studies: memory, a SQLite file, a PostgreSQL database."""
