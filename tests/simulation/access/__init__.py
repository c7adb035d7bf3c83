"""Grants and revocations, in simulation."""
