"""Up to where the pipeline has read: properties of its own tables, which a batch's commit sets with the rows that it
adds (docs/design/pipeline.md#rule-3)."""

NAMESPACE = "system"
"""The namespace of the pipeline's tables."""
COMMITS = "commits"
"""The table of receipts."""
CATALOG_EVENTS = "catalog_events"
"""The table of commits of the registry."""
CLOSED_BEFORE = "pipeline.closed-before"
"""Of the same tables: what came on earlier days has been read, but for receipts of days that are marked."""
REGISTRY_SEQUENCE = "pipeline.registry-sequence"
"""Of `catalog_events`: the sequence number of the last commit that was read."""
BATCH = "pipeline.batch"
"""Of tables of receipts, events and reports: the number of the last batch. Of tables of metadata, and of `lineage`: the
last batch of commits that was read."""
EVENTS_BATCH = "pipeline.events-batch"
"""Of `lineage`: the last batch of `lineage_events` that was joined."""
