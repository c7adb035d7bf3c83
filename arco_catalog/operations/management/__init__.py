"""Who there is in a realm, and what they may do: catalogs, principals, roles and grants, as the management API of
Apache Polaris has them (docs/design/access.md#management)."""
