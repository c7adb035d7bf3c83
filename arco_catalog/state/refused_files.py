"""Which versions of files could not be read, so that no reader in this process reads them to the same end again."""

from storage_backends import Version

MAX_FILES = 1_000
MAX_LENGTH = 2_000
"""Characters of a location, and of a reason: what is longer is not remembered, or cut."""


class RefusedFiles:
    """The files that were refused last, each with its version and why. A file that is replaced is read again."""

    def __init__(self) -> None:
        self._refused: dict[str, tuple[Version, str]] = {}

    def reason(self, location: str, version: Version) -> str | None:
        """Why this version of a file is refused; None if that is not known."""
        refused, reason = self._refused.get(location, (None, None))
        return reason if refused == version else None

    def add(self, location: str, version: Version, reason: str) -> None:
        """Remembers a file, in place of the one that was remembered longest ago where there are too many."""
        self._refused.pop(location, None)
        if len(location) > MAX_LENGTH:
            return
        if len(self._refused) >= MAX_FILES:
            del self._refused[next(iter(self._refused))]
        self._refused[location] = (version, reason[:MAX_LENGTH])
