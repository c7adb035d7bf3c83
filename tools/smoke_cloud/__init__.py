"""Tries a bucket of a cloud with the keys of the environment: the store, a catalog in it, and vended credentials."""
