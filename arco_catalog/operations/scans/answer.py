"""The tasks in one answer, as JSON, within a limit of bytes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from arco_catalog.iceberg.content_files import ContentFile, FileContent
from arco_catalog.iceberg.errors import Unsupported
from arco_catalog.iceberg.json import JsonValue, dumps
from arco_catalog.iceberg.scan_json import file_json

MAX_BYTES: Final = 2 << 20
"""Bytes of JSON after which an answer has no further files: a function's answer has at most 6 MB, in which each quote
takes two bytes."""
MAX_FILE_BYTES: Final = 3 << 20
"""Maximum bytes of JSON of one data file with all its delete files and its residual filter."""

_FileKey = tuple[str, int | None]


class TaskAnswer:
    """The tasks for data files, each with its residual filter and its delete files, as the JSON of an answer.
    `types_of` returns the types of the partition fields of a spec. `rows` is how many rows the client is certain to get
    from them: of files without deletes, all of whose rows match."""

    def __init__(self, stats_columns: frozenset[int], types_of: Callable[[int], Sequence[str]]) -> None:
        self._stats_columns = stats_columns
        self._types_of = types_of
        self._places: dict[_FileKey, int] = {}
        self._deletes: list[bytes] = []
        self._tasks: list[bytes] = []
        self.size = 0
        self.rows = 0

    @property
    def files(self) -> int:
        """The number of data files in the answer."""
        return len(self._tasks)

    @property
    def delete_files(self) -> int:
        """The number of delete files in the answer."""
        return len(self._deletes)

    def add(self, file: ContentFile, deletes: Sequence[ContentFile], residual: JsonValue) -> bool:
        """Adds the task for a data file, and those of its delete files that the answer does not have yet. Returns False
        without a change if the answer has no room for it. Raises `Unsupported` for a file that no answer has room
        for."""
        new = {key: dumps(self._json(each)) for each in deletes if (key := _key(each)) not in self._places}
        places: list[JsonValue] = [self._places.get(_key(each), -1) for each in deletes]
        fresh = iter(range(len(self._deletes), len(self._deletes) + len(new)))
        added = {key: next(fresh) for key in new}
        places = [added.get(_key(each), place) for each, place in zip(deletes, places, strict=True)]
        data = self._json(file)
        task = dumps(
            {
                "data-file": data,
                **({"delete-file-references": places} if places else {}),
                "residual-filter": residual,
            }
        )
        size = len(task) + 1 + sum(len(each) + 1 for each in new.values())
        if size > MAX_FILE_BYTES:
            raise Unsupported(
                f"The delete files of {file.path[:500]}, or its residual filter, are too long for an answer: compact "
                "the table's deletes (rewrite_data_files), use a shorter filter, or let the client plan its scans "
                "(scan-planning-mode=client)"
            )
        if self._tasks and self.size + size > MAX_BYTES:
            return False
        self._places |= added
        self._deletes += new.values()
        self._tasks.append(task)
        self.size += size
        if not deletes and residual is True:
            self.rows += file.statistics.record_count
        return True

    def _json(self, file: ContentFile) -> dict[str, JsonValue]:
        columns = self._stats_columns if file.content is FileContent.DATA else frozenset[int]()
        return file_json(file, self._types_of(file.spec_id), columns)

    def json(self, plan_tasks: Sequence[str], head: Mapping[str, JsonValue]) -> bytes:
        """Returns the body of the answer: the fields of `head`, then the plan tasks and the delete files, if there are
        any, and the tasks."""
        tasks: dict[str, JsonValue] = {"plan-tasks": [*plan_tasks]} if plan_tasks else {}
        first = dumps({**head, **tasks})[:-1]
        deletes = [b'"delete-files":[', b",".join(self._deletes), b"],"] if self._deletes else []
        comma = [] if first == b"{" else [b","]
        return b"".join((first, *comma, *deletes, b'"file-scan-tasks":[', b",".join(self._tasks), b"]}"))


def _key(file: ContentFile) -> _FileKey:
    """Returns what distinguishes a delete file from others: its path, and for a deletion vector its place there."""
    return file.path, file.content_offset
