"""Who makes a request: what proves it, and what becomes of the proof (docs/design/access.md#authentication)."""
