"""Compares this catalog with Apache Iceberg's own REST server, on the same machine, under the same requests."""
