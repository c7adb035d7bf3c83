"""Errors of commands that are reported to the user in one line."""


class CliError(Exception):
    """A command of `arco` failed. The message is printed as one line without a traceback; `code` is the exit code."""

    code = 1


class NotThere(CliError):
    """A store, realm, catalog or other object that a command needs does not exist, or the store can't be read; the
    options may be wrong."""

    code = 2


class CommandStopped(CliError):
    """SIGTERM stopped a command of `arco` before the end."""

    code = 143


def describe_os_error(error: OSError) -> str:
    """Returns the reason for a failure of the operating system, with the name of the file in front if the error has
    one. Python's own text of the error would begin with a number."""
    reason = error.strerror or str(error)
    return reason if error.filename is None else f"{error.filename}: {reason}"
