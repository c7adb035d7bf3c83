"""The store for Azure Blob Storage: `config.py` configures a container, `store.py` is the store."""
