"""S3, and servers that speak its protocol: `config.py` says how a bucket is reached, `store.py` is the store."""
