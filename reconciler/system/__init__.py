"""The tables of the namespace `system`: their definitions, and how rows are written
(docs/design/pipeline.md#tables)."""
