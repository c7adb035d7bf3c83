"""Policies: what users lay down for a catalog, its namespaces and tables, and what applies to each of these."""
