"""The delegation service: purges tables for catalogs, ours or others (docs/design/tasks.md#delegation)."""
