"""Errors of commands that their user can mend."""


class CliError(Exception):
    """A command failed. Its text is printed as one line, without a traceback; `code` is the exit code."""

    code = 1


class NotThere(CliError):
    """A store, a warehouse or a table that the command names does not exist: wrong usage, most likely."""

    code = 2


class CommandStopped(CliError):
    """The command was told to stop, and did, before it had come to its end."""

    code = 143
