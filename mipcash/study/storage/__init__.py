"""Where a study is kept: memory, a SQLite file, a PostgreSQL database."""
