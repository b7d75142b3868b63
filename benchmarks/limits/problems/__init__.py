"""Problems with rules and limits; each module lists its own in ``PROBLEMS``."""
