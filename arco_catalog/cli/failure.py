"""A command that cannot go on, for a reason that its user can mend."""


class Failure(Exception):
    """Its text is all that is printed: one line, no traceback. `code` is what the command exits with."""

    code = 1


class NotThere(Failure):
    """A store, a warehouse or a table that the command names does not exist: wrong usage, most likely."""

    code = 2
