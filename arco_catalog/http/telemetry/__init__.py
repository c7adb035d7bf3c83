"""What is told of requests: a line each, metrics in it, traces. docs/observability.md says what is in them, and what is
kept out."""
