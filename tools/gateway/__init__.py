"""API Gateway and Lambda on one machine: HTTP in, events to processes that run the zip, HTTP out.

`python -m tools.gateway --zip dist/arco-catalog-lambda.zip --endpoint http-api`.
"""
