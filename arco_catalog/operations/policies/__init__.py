"""The operations on policies, the documents that users attach to a catalog, its namespaces, tables and views; and
which policies apply to each of these."""
