"""Vends access to the files of tables, to as little else as the storage allows: credentials that a cloud limits, keys
of a prefix, and signatures for single requests. Nothing that is vended is ever written or logged."""
