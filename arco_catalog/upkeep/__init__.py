"""Programs that operators, schedules and workers run, and that take longer than a request (README.md)."""
