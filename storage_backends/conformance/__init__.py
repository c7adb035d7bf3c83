"""Checks whether a store does what a catalog needs, by calls of the store itself: `arco doctor URL`."""
