"""Problems with outcome constraints besides known rules: ours and other libraries' constrained methods."""
