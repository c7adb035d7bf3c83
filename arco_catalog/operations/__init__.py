"""The operations of the catalog, one module for each capability: they read the stored state, or plan changes of it and
carry them out by the protocols of docs/design."""
