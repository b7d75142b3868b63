"""Problems with rules and outcome constraints. Each module lists its problems in ``PROBLEMS``."""
