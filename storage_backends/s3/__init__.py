"""The store for S3, and for servers that speak its protocol: `config.py` configures a bucket, `store.py` is the
store."""
