"""Looks at everything that a catalog or a realm has stored, says what does not fit together, and mends what is safe to
mend (docs/fsck.md)."""
