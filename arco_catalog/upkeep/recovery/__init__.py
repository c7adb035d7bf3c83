"""Makes backups, and restores a catalog: from a backup, from the records that are left after a loss, or to a time in
the past (docs/recovery.md).

heads.py and pointers.py find what to restore. restore.py, rewind.py, unpack.py and backup.py write; the function that
does it returns the report as a document. `arco restore` and `arco backup` run them.
"""
