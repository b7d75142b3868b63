"""Limits that only an evaluation tells, beside rules that are known: ours and other libraries' constrained methods."""
