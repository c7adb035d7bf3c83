"""Telemetry of requests: log lines with metrics, and traces. docs/observability.md says what is in them, and what is
kept out."""
