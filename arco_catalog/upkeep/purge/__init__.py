"""Deletes the files of dropped tables, as tasks (docs/design/purge.md)."""
