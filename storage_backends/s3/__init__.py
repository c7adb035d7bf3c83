"""S3, and servers that speak its protocol: `config.py` configures a bucket, `store.py` is the store."""
