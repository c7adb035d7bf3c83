"""Deletes objects that no record refers to, and objects whose retention is over (docs/design/collection.md).

For every kind of object, one module lists the objects, decides which to delete, and deletes them. stats.py and
report.py hold the report. collect.py runs all of them, and is run by `jobs.py`, `arco gc` and
`reconciler/collect_job.py`.
"""
