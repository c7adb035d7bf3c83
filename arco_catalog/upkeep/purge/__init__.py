"""Deletes the files of dropped tables, as tasks (docs/design/purge.md).

Due: tasks whose hint has come (state/task_log.py). Done: executor.py, deletion.py. Report: state/purge_progress.py.
Job: worker.py, run by `run_tasks.py`, `arco tasks run`, `arco serve` and `reconciler/purge.py`.
"""
