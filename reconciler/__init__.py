"""Jobs on Spark that assist the catalog. No commit needs them to be correct
(docs/design/README.md#rooms-and-imports)."""
