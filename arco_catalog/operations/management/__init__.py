"""The operations on a realm that Apache Polaris's management API has: on catalogs, principals, roles and grants
(docs/design/access.md#management)."""
