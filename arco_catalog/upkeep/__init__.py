"""Programs that operators, schedules and workers run, and that take longer than a request: the reconciler, collections,
checks, purges, backups and imports (README.md)."""
