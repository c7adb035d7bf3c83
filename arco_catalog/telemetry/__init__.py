"""Telemetry of requests: log lines with metrics, and traces. docs/observability.md lists their fields, and the data
that is never in them."""
