"""Deletes objects of a catalog's state to which no record refers, and objects whose retention is over
(docs/design/collection.md).

Each kind of object has a module that lists the objects, decides which to delete, and deletes them. stats.py and
report.py hold the report. collect.py runs all of them, and is run by `jobs.py`, `arco gc`,
`azure_functions/function_app.py` and `reconciler/collect_job.py`.
"""
