"""The file to which `arco import realm` adds the credentials of the principals that it makes."""

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from arco_catalog.cli.errors import CliError, describe_os_error
from arco_catalog.cli.realm_report import NewSecret
from arco_catalog.iceberg.json import dumps, loads


class SecretsFile:
    """A file with a JSON object on each line, which its owner alone may read. Lines that are there remain."""

    def __init__(self, path: str) -> None:
        """Opens the file to add lines to it, and makes it with mode 0600 if there is none. Raises `CliError` if it
        can't be opened, if it is no regular file, and if others than its owner, who must be the user, have any
        permission for it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise CliError(f"the file for secrets was not opened: {describe_os_error(error)}") from error
        found = os.fstat(self._descriptor)
        others = found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or others:
            os.close(self._descriptor)
            raise CliError(
                f"secrets were not written to {path}: it must be a regular file of yours, with no permission for "
                "others (chmod 600)"
            )

    def add(self, secret: NewSecret) -> None:
        """Adds the credentials of a principal as a line of JSON, and returns when it is on the disk. Raises `OSError`,
        also if only a part of the line was written."""
        line = self._end_of_part() + dumps(secret.to_json()) + b"\n"
        if os.write(self._descriptor, line) != len(line):
            raise OSError(
                "only a part of the line with a new secret was written to the file for secrets, so the principal does "
                "not exist: remove that part of a line; the next run of `arco import realm` then adds the principal"
            )
        os.fsync(self._descriptor)

    def _end_of_part(self) -> bytes:
        """Returns a line break if the file ends in a part of a line, as a stopped run may leave one, else nothing."""
        size = os.fstat(self._descriptor).st_size
        return b"" if size == 0 or os.pread(self._descriptor, 1, size - 1) == b"\n" else b"\n"

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)


def principals_in(path: str) -> Collection[str]:
    """Returns the principals with credentials in a file; none without a file. Lines that are no such JSON, as a stopped
    run may leave one, are ignored. Raises `CliError` if the file can't be read."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise CliError(f"the file with secrets was not read: {describe_os_error(error)}") from error
    found: set[str] = set()
    for line in lines:
        with suppress(ValueError):  # a part of a line, of a run that was stopped
            document = loads(line)
            if isinstance(document, dict) and isinstance(name := document.get("principal"), str):
                found.add(name)
    return found
