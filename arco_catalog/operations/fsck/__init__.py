"""Looks at everything that a catalog has stored, and says what does not fit together (docs/fsck.md). Writes nothing."""
