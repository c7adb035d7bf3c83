"""The delegation service: purges dropped tables for catalogs that submit them, of this or any other deployment
(docs/design/tasks.md#delegation).

submission.py reads a submitted purge, executor.py does it, and service.py answers with the result. `arco
delegation-service` runs the service.
"""
