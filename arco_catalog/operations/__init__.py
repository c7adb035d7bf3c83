"""The operations of the catalog, one module for each capability: they compose state changes into the protocols of
docs/design."""
