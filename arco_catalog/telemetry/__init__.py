"""Telemetry: log lines with metrics about requests, tasks, collections and runs of the reconciler, and traces of
requests. docs/observability.md lists the fields, and the data that is never in them."""
