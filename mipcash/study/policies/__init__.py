"""Policies that decide when a run waits or ends, a module each; :mod:`mipcash.study.policies.policy` has the protocol."""
