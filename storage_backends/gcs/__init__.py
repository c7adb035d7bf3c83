"""Google Cloud Storage by its JSON API: `config.py` says how a bucket is reached, `store.py` is the store."""
