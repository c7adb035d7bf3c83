"""Reads everything that a catalog or a realm has stored, reports inconsistencies, and repairs those that are safe to
repair (docs/fsck.md).

check.py reads all stored objects, and repairs.py repairs. findings.py and report.py hold the report. `arco fsck` runs a
check in one process, and `reconciler/fsck_job.py` on Spark.
"""
