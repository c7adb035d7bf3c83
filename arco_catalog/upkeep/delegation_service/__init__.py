"""The delegation service: purges dropped tables for catalogs that submit them, of this or any other deployment
(docs/design/tasks.md#delegation).

payload.py reads a submitted purge, submission.py makes a task of it, executor.py does it, and service.py runs and reads
the tasks. `arco delegation-service` runs the service.
"""
