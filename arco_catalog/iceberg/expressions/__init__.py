"""Filters of scans: parsed from JSON, bound to a schema, and decided for manifests, partitions and files."""
