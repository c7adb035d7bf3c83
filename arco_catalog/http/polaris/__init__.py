"""HTTP handlers of the catalog API that is Apache Polaris's own: generic tables, semantic models, policies and
notifications."""
