"""Remembers which versions of files could not be read, and why, so that this process does not read them in vain a
second time."""

from storage_backends import Version

MAX_FILES = 1_000
MAX_LENGTH = 2_000
"""The limit of a location, and of a reason, in characters. A file with a longer location is not remembered; a longer
reason is cut."""


class RefusedFiles:
    """The files that this process could not read, each with the version and the reason; if they are more than
    `MAX_FILES`, those that were added last. Files with a location of more than `MAX_LENGTH` characters are not in
    them. A file that is replaced has another version, so it is read."""

    def __init__(self) -> None:
        self._refused: dict[str, tuple[Version, str]] = {}

    def reason(self, location: str, version: Version) -> str | None:
        """Returns the reason why this version of a file could not be read before; None if it was not refused."""
        refused, reason = self._refused.get(location, (None, None))
        return reason if refused == version else None

    def add(self, location: str, version: Version, reason: str) -> None:
        """Records why a version of a file could not be read, in the first `MAX_LENGTH` characters of `reason`; another
        version of the file is forgotten. With `MAX_FILES` other files, the one that was added longest ago is forgotten.
        A file with a location of more than `MAX_LENGTH` characters is not remembered."""
        self._refused.pop(location, None)
        if len(location) > MAX_LENGTH:
            return
        if len(self._refused) >= MAX_FILES:
            del self._refused[next(iter(self._refused))]
        self._refused[location] = (version, reason[:MAX_LENGTH])
