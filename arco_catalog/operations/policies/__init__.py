"""Policies: the documents that users attach to a catalog, its namespaces and tables, and which of them apply to
each."""
