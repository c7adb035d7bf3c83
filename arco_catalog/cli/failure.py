"""A command that cannot go on, for a reason that its user can mend."""


class Failure(Exception):
    """Its text is all that is printed: one line, no traceback."""
