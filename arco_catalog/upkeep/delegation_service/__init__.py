"""The delegation service: purges tables that any catalog has dropped (docs/design/tasks.md#delegation).

submission.py reads a submitted purge, executor.py does it, and service.py answers with the result. `arco
delegation-service` runs the service.
"""
