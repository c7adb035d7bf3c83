"""Makes the catalog's own OpenAPI document (docs/decisions/0054-the-openapi-document-is-made-of-routes.md)."""
