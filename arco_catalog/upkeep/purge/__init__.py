"""Deletes the files of dropped tables, as tasks (docs/design/purge.md).

state/task_log.py has the hints, by which workers find due tasks. executor.py and deletion.py delete, and
state/purge_progress.py has the progress that checkpoints save. worker.py is run by `run_tasks.py`, `arco tasks run`,
`arco serve` and `reconciler/purge.py`.
"""
