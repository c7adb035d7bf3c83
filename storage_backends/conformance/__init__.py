"""Checks whether a store does what a catalog needs, by calling the store: `arco doctor URL`."""
