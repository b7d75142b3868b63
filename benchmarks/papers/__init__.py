"""The claims of five papers, each with the paper's figure and ours. Read ``claims``, then ``effects``, then ``benchmark``."""
