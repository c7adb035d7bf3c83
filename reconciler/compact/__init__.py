"""The job `compact`: receipts, registry commits and tasks become rows of system tables (docs/design/pipeline.md)."""
