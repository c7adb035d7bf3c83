"""What it takes to speak to S3, one idea a module. Nothing here knows what a store promises; `s3_client.py` puts it
together."""
