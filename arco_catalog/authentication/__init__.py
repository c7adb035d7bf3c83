"""Authentication: verifies the credentials of requests, and issues the catalog's own access tokens
(docs/design/access.md#authentication)."""
