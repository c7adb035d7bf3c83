"""Stores that wrap other stores: each is an `ObjectStore` that adds one thing to another."""
