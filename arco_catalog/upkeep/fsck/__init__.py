"""Examines the objects of a catalog or a realm, reports inconsistencies, and repairs what is safe to repair
(docs/fsck.md).

check.py lists all objects and reads most of them, and repairs.py repairs. findings.py and report.py hold the
report. `arco fsck` runs a check in one process, and `reconciler/fsck_job.py` on Spark.
"""
