"""Tests of the benchmarks that print more than they time."""
