"""Handlers of the management API of Apache Polaris: the catalogs, principals, roles and grants of a realm."""
