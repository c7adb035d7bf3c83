"""Lists a tree of files as a store lists keys: in key order, from any key on."""

import os
import threading
from collections import OrderedDict
from collections.abc import Generator
from dataclasses import dataclass

from storage_backends.base import Listed
from storage_backends.local.files import FOLDER_ITSELF, exists, status_of, version_of, written_ms_of
from storage_backends.validation import is_key

PAUSED_WALKS = 4

Walk = Generator[Listed | str, None, None]
"""Objects, and the names of what is no object."""


class PausedWalks:
    """Walks paused at the end of a page, by prefix and cursor, so that the next page need not read a folder of 100,000
    names again. Keeps the newest `PAUSED_WALKS`; any other page starts a new walk."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._walks: OrderedDict[tuple[str, str], Walk] = OrderedDict()

    def take(self, prefix: str, after: str) -> Walk | None:
        """Removes and returns the walk of `prefix` that is paused at `after`; None if there is none."""
        with self._lock:
            return self._walks.pop((prefix, after), None)

    def keep(self, prefix: str, after: str, walk: Walk) -> None:
        """Keeps a walk of `prefix` that is paused at `after`, for the next page. Of more than `PAUSED_WALKS`, closes
        those that were paused first."""
        gone = []
        with self._lock:
            if replaced := self._walks.pop((prefix, after), None):
                gone.append(replaced)
            self._walks[prefix, after] = walk
            while len(self._walks) > PAUSED_WALKS:
                gone.append(self._walks.popitem(last=False)[1])
        for walk in gone:
            walk.close()

    def close(self) -> None:
        """Closes all paused walks."""
        with self._lock:
            walks = list(self._walks.values())
            self._walks.clear()
        for walk in walks:
            walk.close()


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects whose keys start with `prefix` and come after `after`, without those in the root's `hidden` folder.

    Only folders on the way to such keys are read. Of links, devices, and what has no valid
    key as a name, only the name is yielded.
    """

    prefix: str
    after: str
    hidden: str

    def walk(self, folder: int, path: str) -> Walk:
        """Yields what is in and under an open folder; `path` is its key prefix, empty or ending in `/`."""
        for name in self._names(folder, path):
            if not is_key(path + name.rstrip("/")):
                yield path + name
            elif name.endswith("/"):
                yield from self._walk_below(folder, path, name)
            elif status := status_of(folder, name):
                yield Listed(path + name, version_of(status), status.st_size, written_ms_of(status))
            elif exists(folder, name):
                yield path + name

    def _walk_below(self, folder: int, path: str, name: str) -> Walk:
        try:
            below = os.open(name.rstrip("/"), FOLDER_ITSELF, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):  # gone, or replaced, since its name was read
            return
        try:
            yield from self.walk(below, path + name)
        finally:
            os.close(below)

    def _names(self, folder: int, path: str) -> list[str]:
        """Returns the names of files, and of folders with a `/` behind, sorted as their keys are."""
        names = []
        with os.scandir(folder) as entries:
            for entry in entries:
                key = path + entry.name
                if key < self.after and not self.after.startswith(key):
                    continue  # neither this nor anything below it: the quick way past what is listed already
                if entry.is_dir(follow_symlinks=False):
                    if self._wants_folder(key):
                        names.append(entry.name + "/")
                elif key > self.after and key.startswith(self.prefix):
                    names.append(entry.name)
        return sorted(names)

    def _wants_folder(self, key: str) -> bool:
        path = key + "/"
        holds_prefixed = path.startswith(self.prefix) or self.prefix.startswith(path)
        holds_later = path > self.after or self.after.startswith(path)
        return holds_prefixed and holds_later and key != self.hidden
