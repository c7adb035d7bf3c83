"""The job `compact`: writes rows about receipts, registry commits, tasks, engines' reports and OpenLineage events to
system tables (docs/design/pipeline.md)."""
