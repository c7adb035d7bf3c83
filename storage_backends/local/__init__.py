"""A folder of plain files as a store: `config.py` has its settings, `store.py` is the store."""
