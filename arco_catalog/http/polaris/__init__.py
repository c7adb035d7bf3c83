"""Handlers of the catalog API that is Apache Polaris's own: generic tables, semantic models and policies."""
