"""Jobs on Spark that assist the catalog: the reconciler, collections, checks, purges, maintenance, and the tables of
`system`. No commit needs them to be correct (docs/design/README.md#rooms-and-imports)."""
