"""Finds files that lie outside of a table's locations. `FilesElsewhere` compares text with the location in the
metadata; `is_inside` compares normal forms with all locations that the registry has for the table."""

from collections.abc import Collection, Sequence

from arco_catalog.state.locations import Location


class FilesElsewhere:
    """Collects the files that lie outside of a table's location, the first for each folder, and any path with `.` or
    `..`."""

    def __init__(self, location: str) -> None:
        self._prefix = f"{location.rstrip('/')}/"
        self._found: dict[str, str] = {}

    @property
    def files(self) -> Sequence[str]:
        """The collected files outside of the location: the first for a folder, and any path with `.` or `..`, in the
        order in which they were added."""
        return [*self._found.values()]

    def add(self, file: str) -> None:
        """Adds a file, unless it lies inside the location, or another file of the same folder was added before. A path
        with `.` or `..` counts as outside, and is added by itself."""
        if file.startswith(self._prefix) and not has_dots(file):
            return
        # `..` in a path leads out of the folder that the path begins with, so such files are not grouped by folder.
        self._found.setdefault(file if has_dots(file) else file.rpartition("/")[0], file)


def is_inside(file: str, locations: Collection[str]) -> bool:
    """Whether a file lies in one of these locations, which are in normal form. False for text that is no location, and
    for a path with `.` or `..`: some readers resolve these, and others do not."""
    location = None if has_dots(file) else Location.of_file(file)
    return location is not None and location.inside_any(locations)


def has_dots(file: str) -> bool:
    """Whether a segment of a path is `.` or `..`; one at the start of the path, before any slash, does not count."""
    return "/." in file and not {".", ".."}.isdisjoint(file.split("/"))
