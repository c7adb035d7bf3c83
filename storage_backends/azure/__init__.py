"""Azure Blob Storage: `config.py` says how a container is reached, `store.py` is the store."""
