"""Leased, versioned, retried work, whatever it is (docs/design/tasks.md)."""
