"""Stores around stores: each is an `ObjectStore` that adds one thing to another."""
