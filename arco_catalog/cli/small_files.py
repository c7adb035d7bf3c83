"""Reads and replaces small files beside a command: secrets, tokens, logins, metrics."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from arco_catalog.cli.errors import CliError, describe_os_error

MAX_TOKEN_BYTES = 64 << 10
"""Maximum size of a file with a token."""


def read_text(path: str, what: str, max_bytes: int) -> str:
    """Returns the text in a file, without whitespace around it. Raises `CliError` if the file can't be
    read, has more than `max_bytes`, or is no text; in its message the text is called `what`, as `the token`."""
    try:
        with open(path, "rb") as file:
            body = file.read(max_bytes + 1)
        if len(body) > max_bytes:
            raise CliError(f"{what} was not read: {path} has more than {max_bytes:,} bytes")
        return body.decode().strip()
    except OSError as error:
        raise CliError(f"{what} was not read: {describe_os_error(error)}") from error
    except UnicodeDecodeError as error:
        raise CliError(f"{what} was not read: {path} is not UTF-8 text") from error


def replace_file(path: Path, body: bytes, mode: int) -> None:
    """Writes a file with these permissions, whatever the umask, in place of the one that is there: a reader gets the
    old one or the new one, and never a part. Raises `OSError`."""
    descriptor, made = tempfile.mkstemp(dir=path.parent)  # which its owner alone may read
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            os.fchmod(descriptor, mode)
        os.replace(made, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(made)
        raise
