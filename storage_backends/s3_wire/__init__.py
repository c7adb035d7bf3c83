"""The parts of an S3 client: signing, endpoints, credentials, HTTP and connections. `s3_client.py` uses them."""
