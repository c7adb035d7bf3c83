"""The delegation service: purges tables that any catalog has dropped (docs/design/tasks.md#delegation).

Due: submission.py. Done: executor.py. Report: service.py. Job: `arco delegation-service`.
"""
