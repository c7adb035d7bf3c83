"""Deletes what nothing leads to any more, and what is kept for a time only (docs/design/collection.md)."""
