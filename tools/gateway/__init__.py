"""API Gateway and Lambda on one machine: it turns HTTP requests into events for processes that run the deployed zip.

`python -m tools.gateway --zip dist/arco-catalog-lambda.zip --endpoint http-api`.
"""
