"""The entries of a manifest list in a form of which a process remembers many: one of tens of thousands of manifests
takes a tenth of the memory of its entries.

An answer needs a part of the data manifests, and these are compressed in groups. It needs all delete manifests, and
these are not compressed.
"""

import marshal
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final

from arco_catalog.iceberg.content_files import length_of
from arco_catalog.iceberg.manifests import DATA, FieldSummary, ManifestFile

GROUP: Final = 64
"""Maximum entries that are compressed together."""
GROUP_MEMORY: Final = 128 << 10
"""Bytes of memory of entries with which a group ends."""
GROUP_BYTES: Final = 150
"""Bytes of memory of a group without its compressed bytes."""
MANIFEST_BYTES: Final = 750
"""Bytes of memory of an entry."""
SUMMARY_BYTES: Final = 200
"""Bytes of memory of a summary of a partition field in it."""
_MARSHAL: Final = 2
"""The version of the format of `marshal` that is read fastest. No bytes leave the process."""
_PARTITIONS: Final = ManifestFile._fields.index("partitions")


class ManifestList:
    """The manifests in a manifest list. Each has a place, its number in the list. `add` takes all, in order, and then
    `end` must be called."""

    __slots__ = (
        "_count",
        "_firsts",
        "_groups",
        "_open",
        "_open_memory",
        "data_memory",
        "deletes",
        "is_encrypted",
        "size",
    )

    def __init__(self) -> None:
        self._count = 0
        self._groups: list[bytes] = []
        self._firsts: list[int] = []
        """The place of the first manifest of each group."""
        self._open: list[list[Any]] = []
        self._open_memory = 0
        self.deletes: list[ManifestFile] = []
        """The delete manifests, in order."""
        self.is_encrypted = False
        """Whether a manifest is encrypted."""
        self.size = GROUP_BYTES
        """Bytes of memory of the list."""
        self.data_memory = 0
        """Bytes of memory of the data manifests in it, decompressed."""

    @classmethod
    def of(cls, manifests: Sequence[ManifestFile]) -> "ManifestList":
        """Returns the list of these manifests."""
        found = cls()
        found.add(manifests)
        found.end()
        return found

    def add(self, manifests: Sequence[ManifestFile]) -> None:
        """Appends manifests to the list."""
        for manifest in manifests:
            self.is_encrypted = self.is_encrypted or manifest.key_metadata is not None
            memory = memory_of(manifest)
            if manifest.content != DATA:
                self.deletes.append(manifest)
                self.size += memory
            else:
                self._open.append(_serializable(self._count, manifest))
                self._open_memory += memory
                self.data_memory += memory
                if len(self._open) >= GROUP or self._open_memory >= GROUP_MEMORY:
                    self.end()
            self._count += 1

    def end(self) -> None:
        """Compresses the data manifests that are not compressed yet."""
        if self._open:
            group = zlib.compress(marshal.dumps(self._open, _MARSHAL), 1)
            self._firsts.append(self._open[0][0])
            self._groups.append(group)
            self.size += len(group) + GROUP_BYTES
            self._open, self._open_memory = [], 0

    def __len__(self) -> int:
        """How many manifests the list has."""
        return self._count

    def all(self) -> list[ManifestFile]:
        """Returns all manifests, the delete manifests first."""
        return [*self.deletes, *(manifest for _, manifest in self.data())]

    def data(self, places: range | None = None) -> Iterator[tuple[int, ManifestFile]]:
        """Yields the data manifests at these places, which follow one another, with their places; all for None."""
        wanted = range(self._count) if places is None else places
        for number in range(max(0, bisect_right(self._firsts, wanted.start) - 1), len(self._groups)):
            if self._firsts[number] >= wanted.stop:
                return
            for place, *fields in marshal.loads(zlib.decompress(self._groups[number])):
                if place in wanted:
                    yield place, _deserialized(fields)


def memory_of(manifest: ManifestFile) -> int:
    """Returns an estimate of the bytes of memory that an entry of a manifest list takes, with the path, the key and the
    summaries of partitions."""
    size = MANIFEST_BYTES + length_of(manifest.manifest_path) + len(manifest.key_metadata or b"")
    for each in manifest.partitions or ():
        size += SUMMARY_BYTES + len(each.lower_bound or b"") + len(each.upper_bound or b"")
    return size


def _serializable(place: int, manifest: ManifestFile) -> list[Any]:
    """Returns a place and the fields of a manifest, as `marshal` takes them."""
    row: list[Any] = [place, *manifest]
    if manifest.partitions is not None:
        row[1 + _PARTITIONS] = [tuple(each) for each in manifest.partitions]
    return row


def _deserialized(fields: list[Any]) -> ManifestFile:
    """Returns the manifest with these fields, of which it changes the summaries."""
    summaries = fields[_PARTITIONS]
    if summaries is not None:
        fields[_PARTITIONS] = [FieldSummary._make(each) for each in summaries]
    return ManifestFile._make(fields)
