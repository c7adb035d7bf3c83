"""Restores the registry's HEAD and tables' pointers after a loss, and makes backups (docs/recovery.md).

Due: heads.py, pointers.py. Done: restore.py, rewind.py, unpack.py, backup.py. Report: the document that each returns.
Job: `arco restore`, `arco backup`.
"""
