"""Incumbents without proof.

Read in this order:

local_search  descent and tabu search over legal moves
repair        legal points under very many rules
"""
