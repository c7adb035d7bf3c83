"""Finds the registry's HEAD and tables' pointers again when they were lost, and keeps backups (docs/recovery.md)."""
