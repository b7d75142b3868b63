"""Where a study is kept: the protocol, memory, SQLite."""
