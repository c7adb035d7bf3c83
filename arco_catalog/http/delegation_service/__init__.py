"""The delegation service's HTTP API (docs/delegation-service.openapi.yaml)."""
