"""Lists a tree of files as a store lists keys: in key order, beginning after any key."""

import os
import threading
from collections import OrderedDict
from collections.abc import Generator

from storage_backends.base import Listed
from storage_backends.lazy_dataclass import dataclass
from storage_backends.local.files import FOLDER_ITSELF, exists, status_of, version_of, written_ms_of
from storage_backends.validation import is_key

PAUSED_WALKS = 4

Walk = Generator[Listed | str, None, None]
"""Objects, and the names of what is no object."""


class PausedWalks:
    """Keeps walks over the files of a local store that are paused at the end of a page, by prefix and cursor, so that
    the next page need not read a folder of 100,000 names again. Keeps the `PAUSED_WALKS` that were kept last, and
    closes others; for a page without a walk a new one starts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._walks: OrderedDict[tuple[str, str], Walk] = OrderedDict()

    def take(self, prefix: str, after: str) -> Walk | None:
        """Returns the walk of a listing of `prefix` that is paused after the key `after`, and no longer keeps it; None
        if no such walk is kept."""
        with self._lock:
            return self._walks.pop((prefix, after), None)

    def keep(self, prefix: str, after: str, walk: Walk) -> None:
        """Keeps the walk of a listing of `prefix` that is paused after the key `after`, so that the next page continues
        it, in place of one for the same page, which it closes. If there are more than `PAUSED_WALKS` walks, it closes
        those that were kept first."""
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
        """Closes and forgets all walks of listings that are paused."""
        with self._lock:
            walks = list(self._walks.values())
            self._walks.clear()
        for walk in walks:
            walk.close()


@dataclass(frozen=True, slots=True)
class Listing:
    """One listing of a local store: the objects whose keys start with `prefix` and come after `after`, without those in
    the root's folder `hidden`.

    Only directories that can have such keys are read. Of links, devices, and what has no valid key as a name, only the
    name is yielded.
    """

    prefix: str
    after: str
    hidden: str

    def walk(self, folder: int, path: str) -> Walk:
        """Yields the objects of this listing in and below an open directory, in the order of their keys, and between
        them the names of what is no object: no key, or no plain file, such as a link. `path` is the key prefix of the
        directory: empty, or ending in `/`."""
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
        """Yields as `walk` does what is in the folder `name` of an open folder, and below it; nothing if that folder no
        longer exists."""
        try:
            below = os.open(name.rstrip("/"), FOLDER_ITSELF, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):  # gone, or replaced, since its name was read
            return
        try:
            yield from self.walk(below, path + name)
        finally:
            os.close(below)

    def _names(self, folder: int, path: str) -> list[str]:
        """Returns the names in a directory that may lead to keys of this listing, with a `/` behind those of
        directories, in the order of keys."""
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
        """Whether the directory with this key, which has no slash at its end, may have objects of this listing in it:
        by the prefix, by the key after which the listing begins, and since it is not `hidden`."""
        path = key + "/"
        holds_prefixed = path.startswith(self.prefix) or self.prefix.startswith(path)
        holds_later = path > self.after or self.after.startswith(path)
        return holds_prefixed and holds_later and key != self.hidden
