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
        self._last_residual: tuple[JsonValue, bytes] = (None, b"null")
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
        """Adds the task for a data file, and each of its delete files that the answer does not have yet. Adds the
        file's rows to `rows` if it has no deletes and all of them match. Returns False without a change if the answer
        has no room for it. Raises `Unsupported` for a file that is too large for any answer."""
        task = b'{"data-file":%b%b,"residual-filter":%b}'
        if not deletes:
            task %= self._json(file), b"", self._residual(residual)
            if not self._has_room(file, len(task) + 1):
                return False
            self._tasks.append(task)
            if residual is True:
                self.rows += file.statistics.record_count
            return True
        places: dict[_FileKey, int] = {}
        new: list[bytes] = []
        references = self._references(file, deletes, places, new)
        task %= self._json(file), references, self._residual(residual)
        if not self._has_room(file, len(task) + 1 + sum(map(len, new)) + len(new)):
            return False
        self._places |= places
        self._deletes += new
        self._tasks.append(task)
        return True

    def _references(
        self, file: ContentFile, deletes: Sequence[ContentFile], places: dict[_FileKey, int], new: list[bytes]
    ) -> bytes:
        """Returns the field `delete-file-references` of a task for a data file, as JSON text: the places of these
        delete files in the answer. Adds the places of those that the answer does not have yet to `places`, and the JSON
        of these to `new`. Raises `Unsupported` as soon as these are too long for any answer."""
        references: list[int] = []
        size = 0
        for each in deletes:
            key = _key(each)
            place = self._places.get(key, places.get(key))
            if place is None:
                place = places[key] = len(self._deletes) + len(new)
                new.append(self._json(each))
                size += len(new[-1])
                if size > MAX_FILE_BYTES:
                    raise _too_long(file)
            references.append(place)
        return b',"delete-file-references":[%b]' % ",".join(map(str, references)).encode()

    def _has_room(self, file: ContentFile, size: int) -> bool:
        """Whether the answer has room for `size` bytes of JSON for a data file, which it then counts. The first file
        always has room. Raises `Unsupported` for any file, first or not, with more than `MAX_FILE_BYTES`."""
        if size > MAX_FILE_BYTES:
            raise _too_long(file)
        if self._tasks and self.size + size > MAX_BYTES:
            return False
        self.size += size
        return True

    def _json(self, file: ContentFile) -> bytes:
        """Returns the JSON of a data file with the requested statistics, or of a delete file, without statistics. It is
        the packed JSON that the file has, if it has that and no statistics are requested."""
        columns = self._stats_columns if file.content is FileContent.DATA else frozenset[int]()
        if file.written is not None and not columns:
            return file.written
        return dumps(file_json(file, self._types_of(file.spec_id), columns))

    def _residual(self, residual: JsonValue) -> bytes:
        """Returns a residual filter as JSON text. It is not written once more if it is the same object as the one
        before, since neighbouring files share one."""
        value, written = self._last_residual
        if value is not residual:
            written = dumps(residual)
            self._last_residual = residual, written
        return written

    def json(self, plan_tasks: Sequence[str], head: Mapping[str, JsonValue]) -> bytes:
        """Returns the body of the answer: the fields of `head`, then the plan tasks and the delete files, if there are
        any, and the tasks."""
        tasks: dict[str, JsonValue] = {"plan-tasks": [*plan_tasks]} if plan_tasks else {}
        first = dumps({**head, **tasks})[:-1]
        deletes = [b'"delete-files":[', b",".join(self._deletes), b"],"] if self._deletes else []
        comma = [] if first == b"{" else [b","]
        return b"".join((first, *comma, *deletes, b'"file-scan-tasks":[', b",".join(self._tasks), b"]}"))


def _too_long(file: ContentFile) -> Unsupported:
    """Returns the error for a data file that is too long for any answer, with the deletes, the residual filter and the
    requested statistics."""
    return Unsupported(
        f"The delete files of {file.path[:500]}, or its residual filter or statistics, are too long for an answer: "
        "compact the table's deletes (rewrite_data_files), use a shorter filter, or let the client plan its scans "
        "(scan-planning-mode=client)"
    )


def _key(file: ContentFile) -> _FileKey:
    """Returns what distinguishes a delete file from others: its path, and for a deletion vector its place there."""
    return file.path, file.content_offset
