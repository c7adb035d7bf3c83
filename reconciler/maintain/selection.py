"""Which files a rewrite takes, as Iceberg's planners choose them (`BinPackRewriteFilePlanner`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.live_files import SMALL
from reconciler.maintain.contents import DataFile

LARGE = 1.8
"""The share of the target size above which Iceberg rewrites a data file, as it does one below `SMALL`."""
MIN_INPUT_FILES = 5
"""Of one group, to be rewritten for their number alone."""
MAX_GROUP_BYTES = 100 << 30
DELETED_SHARE = 0.3
"""The share of a data file's rows from which on it is rewritten if they are deleted."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """A file is rewritten that is smaller or larger than these bytes, if enough of them lie together; and one that has
    so many delete files (None: however many), or so large a share of its rows deleted."""

    target: int
    least: int
    most: int
    enough: int = MIN_INPUT_FILES
    group_bytes: int = MAX_GROUP_BYTES
    delete_files: int | None = None
    deleted_share: float = DELETED_SHARE

    @classmethod
    def of(cls, target: int, options: Mapping[str, str]) -> "Criteria":
        """By the options of `rewrite_data_files`. Raises `ValueError` for those that Iceberg refuses, and where all
        files would be rewritten every time."""
        delete_files = options.get("delete-file-threshold")
        found = cls(
            target,
            int(options.get("min-file-size-bytes", SMALL * target)),
            int(options.get("max-file-size-bytes", LARGE * target)),
            int(options.get("min-input-files", MIN_INPUT_FILES)),
            int(options.get("max-file-group-size-bytes", MAX_GROUP_BYTES)),
            None if delete_files is None else int(delete_files),
            float(options.get("delete-ratio-threshold", DELETED_SHARE)),
        )
        if not 0 <= found.least < target < found.most:
            raise ValueError(
                f"min-file-size-bytes must be less than the target of {target:,}, and max-file-size-bytes more"
            )
        if found.enough < 1 or found.group_bytes < 1:
            raise ValueError("min-input-files and max-file-group-size-bytes must be at least 1")
        if found.delete_files is not None and found.delete_files < 1:
            raise ValueError("delete-file-threshold must be at least 1: below, all files are rewritten every time")
        if not 0 < found.deleted_share <= 1:
            raise ValueError("delete-ratio-threshold must be above 0, and 1 at most")
        return found

    def selected(self, files: Sequence[DataFile]) -> Sequence[Sequence[DataFile]]:
        """Of the files of one partition, the groups that are rewritten."""
        candidates = [file for file in files if self._is_wrong_size(file) or self.has_many_deletes(file)]
        return [group for group in self._packed(candidates) if self._is_worthwhile(group)]

    def has_many_deletes(self, file: DataFile) -> bool:
        """Whether a file is rewritten for what is deleted of it, whatever its size."""
        if self.delete_files is not None and file.deletes.files >= self.delete_files:
            return True
        deleted = min(file.deletes.records, file.records)
        return deleted > 0 and deleted / file.records >= self.deleted_share

    def becoming(self, files: Sequence[DataFile]) -> int:
        """How many files become of them."""
        return -(-sum(file.size for file in files) // self.target)

    def _is_wrong_size(self, file: DataFile) -> bool:
        return not self.least <= file.size <= self.most

    def _packed(self, files: Sequence[DataFile]) -> Iterator[Sequence[DataFile]]:
        """In groups of so many bytes, in the order of the files."""
        group: list[DataFile] = []
        size = 0
        for file in files:
            if group and size + file.size > self.group_bytes:
                yield group
                group, size = [], 0
            group.append(file)
            size += file.size
        if group:
            yield group

    def _is_worthwhile(self, group: Sequence[DataFile]) -> bool:
        size = sum(file.size for file in group)
        together = len(group) > 1 and (len(group) >= self.enough or size > self.target)
        return together or size > self.most or any(map(self.has_many_deletes, group))


@dataclass(slots=True)
class Selection:
    """What a rewrite of files would do, over all partitions: `deleted_from` is how many of the files have many
    deletes."""

    files: int = 0
    bytes: int = 0
    into: int = 0
    partitions: int = 0
    deleted_from: int = 0

    @classmethod
    def of(cls, partitions: Iterable[Sequence[DataFile]], criteria: Criteria) -> "Selection":
        """Of the files of each partition."""
        found = cls()
        for files in partitions:
            groups = criteria.selected(files)
            found.partitions += bool(groups)
            for group in groups:
                found.files += len(group)
                found.bytes += sum(file.size for file in group)
                found.into += criteria.becoming(group)
                found.deleted_from += sum(map(criteria.has_many_deletes, group))
        return found
