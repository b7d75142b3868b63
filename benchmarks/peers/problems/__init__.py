"""Problems of the peers benchmark. Each module lists its problems in ``PROBLEMS``."""
