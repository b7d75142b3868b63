"""The loop: propose, evaluate, record, resume."""
