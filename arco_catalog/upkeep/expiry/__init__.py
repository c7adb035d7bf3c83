"""Expires snapshots of tables by policies, and later deletes the files that only these needed
(docs/design/expiry.md)."""
