"""The tables of the namespace `system`: what they are, how rows get into them (docs/design/pipeline.md#tables)."""
