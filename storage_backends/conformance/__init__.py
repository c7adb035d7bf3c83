"""Checks whether a store does what a catalog needs, on a real bucket: `arco doctor URL`."""
