"""Problems with outcome constraints besides rules: our methods and constrained methods of other libraries."""
