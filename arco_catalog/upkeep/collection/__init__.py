"""Deletes objects that no record refers to, and objects whose retention is over (docs/design/collection.md).

Due and done: one module for each kind of object, which lists, decides and deletes. Report: stats.py, report.py. Job:
collect.py, run by `jobs.py`, `arco gc` and `reconciler/collect_job.py`."""
