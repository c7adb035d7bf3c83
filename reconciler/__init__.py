"""What runs on Spark, beside the catalog and never needed for a commit to be correct
(docs/design/README.md#rooms-and-imports)."""
