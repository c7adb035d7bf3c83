"""Reads everything that a catalog or a realm has stored, reports inconsistencies, and repairs those that are safe to
repair (docs/fsck.md).

Due: all stored objects (check.py). Done: repairs.py. Report: findings.py, report.py. Job: `arco fsck`, and
`reconciler/fsck_job.py` on Spark."""
