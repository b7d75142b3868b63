"""Proofs by soft consistency and enumeration, without a solver."""
