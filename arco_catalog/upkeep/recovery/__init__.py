"""Restores the registry's HEAD and tables' pointers after a loss, and makes backups (docs/recovery.md).

heads.py and pointers.py find what to restore. restore.py, rewind.py, unpack.py and backup.py write; the function that
does it returns the report as a document. `arco restore` and `arco backup` run them.
"""
