"""Plans scans of tables: from the request to tasks, without state in a process (docs/design/scan-planning.md)."""
