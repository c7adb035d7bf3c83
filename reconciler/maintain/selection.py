"""Selects the files of a rewrite by the rules of Iceberg's planners (`BinPackRewriteFilePlanner`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from arco_catalog.iceberg.shapes import MAX_LONG
from reconciler.live_files import SMALL
from reconciler.maintain.contents import DataFile

LARGE = 1.8
"""The share of the target size above which Iceberg rewrites a data file; below `SMALL` it does so, too."""
MIN_INPUT_FILES = 5
"""From how many files on a group of any size is rewritten."""
MAX_GROUP_BYTES = 100 << 30
DELETED_SHARE = 0.3
"""The share of deleted rows from which on a data file is rewritten."""

Number = TypeVar("Number", int, float)
Default = TypeVar("Default", int, float, None)


@dataclass(frozen=True, slots=True)
class Criteria:
    """The criteria by which a rewrite selects data files. `target` is the size in bytes of new files. A file smaller
    than `min_bytes` or larger than `max_bytes` is a candidate, and so is one with `delete_files` delete files or more
    (None: any number is fine), or with `deleted_share` of the rows deleted, or more. Candidates of a partition are
    packed into groups of at most `max_group_bytes`; a larger file is a group by itself. A group is rewritten if it has
    more than one file and either `min_input_files` or more than `target` bytes, or if it has more than `max_bytes`, or
    a file with many deletes."""

    target: int
    min_bytes: int
    max_bytes: int
    min_input_files: int = MIN_INPUT_FILES
    max_group_bytes: int = MAX_GROUP_BYTES
    delete_files: int | None = None
    deleted_share: float = DELETED_SHARE

    @classmethod
    def of(cls, target: int, options: Mapping[str, str]) -> "Criteria":
        """Returns the criteria that these options of `rewrite_data_files` set; defaults are Iceberg's, and options that
        set no criterion are not read. Raises `ValueError` for values that Iceberg refuses, and for those by which every
        run would rewrite all files."""
        if target > MAX_LONG:
            raise ValueError(f"the target file size must be at most {MAX_LONG} bytes")
        found = cls(
            target,
            _number(options, "min-file-size-bytes", int, int(SMALL * target)),
            _number(options, "max-file-size-bytes", int, int(LARGE * target)),
            _number(options, "min-input-files", int, MIN_INPUT_FILES),
            _number(options, "max-file-group-size-bytes", int, MAX_GROUP_BYTES),
            _number(options, "delete-file-threshold", int, None),
            _number(options, "delete-ratio-threshold", float, DELETED_SHARE),
        )
        if not 0 <= found.min_bytes < target < found.max_bytes:
            raise ValueError(
                f"min-file-size-bytes ({found.min_bytes:,}) must be at least 0 and less than the target file size of "
                f"{target:,} bytes, and max-file-size-bytes ({found.max_bytes:,}) must be greater than the target"
            )
        if found.min_input_files < 1 or found.max_group_bytes < 1:
            raise ValueError(
                f"min-input-files ({found.min_input_files}) and max-file-group-size-bytes ({found.max_group_bytes}) "
                "must both be at least 1"
            )
        if found.delete_files is not None and found.delete_files < 1:
            raise ValueError(
                f"delete-file-threshold ({found.delete_files}) must be at least 1: by a lower number, all files are "
                "rewritten every time"
            )
        if not 0 < found.deleted_share <= 1:
            raise ValueError(f"delete-ratio-threshold ({found.deleted_share}) must be above 0, and 1 at most")
        return found

    def selected(self, files: Sequence[DataFile]) -> Sequence[Sequence[DataFile]]:
        """Returns the groups of files that a rewrite takes of these data files of one partition; empty if no group is
        worth it."""
        candidates = [file for file in files if self._is_wrong_size(file) or self.has_many_deletes(file)]
        return [group for group in self._pack(candidates) if self._is_worthwhile(group)]

    def has_many_deletes(self, file: DataFile) -> bool:
        """Whether a file has enough delete files or deleted rows to be rewritten at any size."""
        if self.delete_files is not None and file.deletes.files >= self.delete_files:
            return True
        deleted = min(file.deletes.records, file.records)
        return deleted > 0 and deleted / file.records >= self.deleted_share

    def output_files(self, files: Sequence[DataFile]) -> int:
        """Returns how many files of at most the target size a rewrite makes of these data files: their bytes divided by
        the target size, rounded up."""
        return -(-sum(file.size for file in files) // self.target)

    def _is_wrong_size(self, file: DataFile) -> bool:
        """Whether a file is smaller or larger than the limits."""
        return not self.min_bytes <= file.size <= self.max_bytes

    def _pack(self, files: Sequence[DataFile]) -> Iterator[Sequence[DataFile]]:
        """Iterates over groups of at most `max_group_bytes` in the order of the files; a larger file is a group by
        itself."""
        group: list[DataFile] = []
        size = 0
        for file in files:
            if group and size + file.size > self.max_group_bytes:
                yield group
                group, size = [], 0
            group.append(file)
            size += file.size
        if group:
            yield group

    def _is_worthwhile(self, group: Sequence[DataFile]) -> bool:
        """Whether a group of files is to be rewritten: it has at least two files, and as many as `min_input_files` or
        more bytes than the target; or it has more than `max_bytes` in all; or any of the files has many deletes."""
        size = sum(file.size for file in group)
        combines = len(group) > 1 and (len(group) >= self.min_input_files or size > self.target)
        return combines or size > self.max_bytes or any(map(self.has_many_deletes, group))


def _number(
    options: Mapping[str, str], name: str, parse: Callable[[str], Number], default: Default
) -> Number | Default:
    """Returns the number in an option; the default if it is not set. Raises `ValueError`, which names the option, for
    another text."""
    if name not in options:
        return default
    try:
        return parse(options[name])
    except ValueError:
        number = "a whole number" if parse is int else "a number"
        raise ValueError(f"{name} must be {number}, got {options[name]}") from None


@dataclass(slots=True)
class Selection:
    """The counts of the files that a rewrite takes in all partitions: how many, their bytes, and `into` how many they
    are rewritten. `partitions` counts partitions with such files, `deleted_from` the files that have many deletes."""

    files: int = 0
    bytes: int = 0
    into: int = 0
    partitions: int = 0
    deleted_from: int = 0

    @classmethod
    def of(cls, partitions: Iterable[Sequence[DataFile]], criteria: Criteria) -> "Selection":
        """Selects data files in every partition by the criteria, and returns the counts of the files that a rewrite
        takes."""
        found = cls()
        for files in partitions:
            groups = criteria.selected(files)
            found.partitions += bool(groups)
            for group in groups:
                found.files += len(group)
                found.bytes += sum(file.size for file in group)
                found.into += criteria.output_files(group)
                found.deleted_from += sum(map(criteria.has_many_deletes, group))
        return found
