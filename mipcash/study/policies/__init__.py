"""Policies that decide when a run waits or ends, a module each; ``mipcash.study.policies.policy`` has the protocol."""
