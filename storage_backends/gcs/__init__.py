"""The store for Google Cloud Storage, by its JSON API: `config.py` configures a bucket, `store.py` is the store."""
