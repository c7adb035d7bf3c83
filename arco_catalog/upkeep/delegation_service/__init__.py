"""The delegation service: purges tables for any catalog (docs/design/tasks.md#delegation).

Due: submission.py. Done: executor.py. Report: service.py. Job: `arco delegation-service`."""
