"""Files outside of the locations that a table holds."""

from collections.abc import Collection, Sequence

from arco_catalog.state.locations import Location


class FilesElsewhere:
    """Collects files that do not lie below a location, one for each folder: most tables have none."""

    def __init__(self, location: str) -> None:
        self._prefix = f"{location.rstrip('/')}/"
        self._found: dict[str, str] = {}

    @property
    def files(self) -> Sequence[str]:
        """One file for each folder."""
        return [*self._found.values()]

    def add(self, file: str) -> None:
        """Adds a file, unless it lies below the location, or that folder has one."""
        if file.startswith(self._prefix) and not has_dots(file):
            return
        # A name of dots leaves the folder: each such file counts by itself.
        self._found.setdefault(file if has_dots(file) else file.rpartition("/")[0], file)


def is_inside(file: str, locations: Collection[str]) -> bool:
    """Whether a file lies in one of these locations, given by their normal forms, for every reader: some resolve
    `..` in a path."""
    location = None if has_dots(file) else Location.of_file(file)
    return location is not None and location.inside_any(locations)


def has_dots(file: str) -> bool:
    """Whether a level of a path is `.` or `..`."""
    return "/." in file and not {".", ".."}.isdisjoint(file.split("/"))
