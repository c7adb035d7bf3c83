"""The store of plain files on the local disk: `config.py` has its settings, `store.py` is the store."""
