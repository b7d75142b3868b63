"""Policies that decide when a run waits or ends.

Read in this order:

policy   the protocol
spent    budget, deadline, requests to stop
workers  lost workers, proposals made ahead, other writers
defects  failures of the objective itself
"""
