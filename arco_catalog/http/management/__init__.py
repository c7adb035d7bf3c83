"""HTTP handlers of Apache Polaris's management API: the catalogs, principals, roles and grants of a realm."""
