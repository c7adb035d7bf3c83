"""Telemetry: log lines about requests, tasks, garbage collections and runs of the reconciler, with metrics for
CloudWatch where a namespace is set; metrics for Prometheus; the audit log; traces of requests; and the format of the
process's own log. docs/observability.md lists the fields, and the data that is never in them."""
