"""Executes background tasks of any type, with leases, versions and retries (docs/design/tasks.md)."""
