"""Benchmarks of the catalog, and what they need: servers, stores and clients to measure."""
