"""Access to the files of a table, and to nothing else: credentials that a cloud limits, and signatures for single
requests. Nothing that is vended is ever written or logged."""
