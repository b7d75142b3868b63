"""The artificial objective of the ADMM papers: splitting methods, one process over everything, and the others."""
