"""Judges the rows of branches: a commit changes them by its own append alone, and what it assigns only rises. Rows are
counted, so that one that is there twice shows."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import fastavro

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.properties import COMMIT_APPENDS
from tests.simulation.programs.appending import MAIN, branch_of, may_be_rebased
from tests.simulation.programs.requests import Request

Entry = tuple[str, int, int | None]
"""An entry of a manifest list: its manifest, sequence number and first row id."""


@dataclass
class Manifests:
    """The manifest lists and manifests of tables that allow rebases, each read when metadata that names it became
    current."""

    lists: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, document: JsonObject, read: Callable[[str], bytes]) -> None:
        """Reads what a metadata document names, by a function that raises if a file is not there."""
        named: Any = document
        if COMMIT_APPENDS not in named.get("properties", {}):
            return
        for snapshot in named.get("snapshots", []):
            location = snapshot["manifest-list"]
            if location not in self.lists:
                entries = [_entry(each) for each in _records(read(location))]
                for path, _, _ in entries:
                    if path not in self.rows:
                        self.rows[path] = tuple(_row(each) for each in _records(read(path)))
                self.lists[location] = tuple(entries)

    def files_of(self, document: JsonObject) -> Iterator[str]:
        """The manifest lists, manifests and data files that a document's snapshots name, as far as they were read."""
        for snapshot in _list(document, "snapshots"):
            location = snapshot.get("manifest-list")
            yield location
            for path, _, _ in self.lists.get(location, ()):
                yield path
                yield from self.rows[path]

    def rows_of(self, document: JsonObject, branch: str) -> Counter[str]:
        """The rows of a branch, none if there is no such branch."""
        snapshot = _head(document, branch)
        listed = () if snapshot is None else self.lists[snapshot["manifest-list"]]
        return Counter(row for path, _, _ in listed for row in self.rows[path])


def problems(
    manifests: Manifests, request: Request | None, body: JsonObject, base: JsonObject, new: JsonObject
) -> Iterator[str]:
    """What is wrong with a commit on `base` that made the metadata `new`, as its client sent it in `body`."""
    if COMMIT_APPENDS not in _of(new, "properties"):
        return
    appends = request is not None and request.kind == "add-rows"
    branch = branch_of(request) if request is not None and appends else None
    for each in _of(base, "refs").keys() & _of(new, "refs").keys():
        added = manifests.rows_of(new, each)
        added.subtract(manifests.rows_of(base, each))
        changed = {row: count for row, count in added.items() if count}
        if (list(changed.values()) != [1]) if each == branch else changed:
            yield f"the rows of {each} are changed by {changed}"
    twice = [row for row, count in manifests.rows_of(new, MAIN).items() if count > 1]
    if twice:
        yield f"{twice} are there more than once"
    times = [entry["timestamp-ms"] for entry in _list(new, "snapshot-log")]
    if times != sorted(times):
        yield f"the snapshot log goes back: {times}"
    if branch is not None:
        yield from _assigned(manifests, base, new, branch)
    if request is not None and _is_rebased(request, body, base) and not may_be_rebased(request):
        yield f"{request} was rebased, which relies on the refusal"


def _is_rebased(request: Request, body: JsonObject, base: JsonObject) -> bool:
    """Whether a commit to a branch was made on another snapshot than it requires."""
    if request.kind not in ("add-rows", "compact"):
        return False
    head = _head(base, branch_of(request))
    return bool(_required(body) != (head and head["snapshot-id"]))


def _assigned(manifests: Manifests, base: Any, new: Any, branch: str) -> Iterator[str]:
    """What is wrong with the numbers that an append was given."""
    snapshot, before = _head(new, branch), _head(base, branch)
    assert snapshot is not None
    had = () if before is None else manifests.lists[before["manifest-list"]]
    added = [each for each in manifests.lists[snapshot["manifest-list"]] if each not in had]
    sequence = base["last-sequence-number"] + 1
    first = base["next-row-id"] if new["format-version"] == 3 else None
    if [each[1:] for each in added] != [(sequence, first)] or snapshot["sequence-number"] != sequence:
        yield f"{added} were added, expected one with the numbers {sequence} and {first}"
    if snapshot.get("parent-snapshot-id") != (before and before["snapshot-id"]):
        yield f"the parent of {snapshot['snapshot-id']} is not the snapshot that the branch had"
    if first is not None and (snapshot["first-row-id"], new["next-row-id"]) != (first, first + 1):
        yield f"{snapshot['snapshot-id']} has the first row id {snapshot['first-row-id']}, expected {first}"


def is_lost(request: Request, body: JsonObject, document: JsonObject) -> bool:
    """Whether an append must be refused on a table: it has lost its branch, and may not be rebased there."""
    sent: Any = body
    now: Any = document
    parent = _required(body)
    if sent["requirements"][1]["uuid"] != document["table-uuid"]:
        return True
    snapshot = _head(document, branch_of(request))
    if (snapshot and snapshot["snapshot-id"]) == parent:  # a commit to another branch may have taken its number
        return bool(sent["updates"][0]["snapshot"]["sequence-number"] <= now["last-sequence-number"])
    if snapshot is None or not may_be_rebased(request) or COMMIT_APPENDS not in _of(document, "properties"):
        return True
    known = {each["snapshot-id"]: each for each in _list(document, "snapshots")}
    while snapshot is not None and snapshot["snapshot-id"] != parent:
        snapshot = known.get(snapshot.get("parent-snapshot-id"))
        if snapshot is None and parent is not None:
            return True
    return parent is None and _is_cut(document, branch_of(request), known)


def lacks_snapshot(body: JsonObject, document: JsonObject) -> bool:
    """Whether metadata lacks the snapshot to which a commit sets a branch: it was expired."""
    sent: Any = body
    return sent["updates"][0]["snapshot-id"] not in [each["snapshot-id"] for each in _list(document, "snapshots")]


def _is_cut(document: JsonObject, branch: str, known: Mapping[int, Any]) -> bool:
    """Whether the branch has had snapshots that were expired."""
    return any(each.get("parent-snapshot-id", each["snapshot-id"]) not in known for each in known.values())


def _required(body: JsonObject) -> int | None:
    """The snapshot that a commit requires of its branch."""
    sent: Any = body
    found = sent["requirements"][0]["snapshot-id"]
    return None if found is None else int(found)


def _head(document: Any, branch: str) -> Any:
    ref = document.get("refs", {}).get(branch)
    return ref and next(each for each in document["snapshots"] if each["snapshot-id"] == ref["snapshot-id"])


def _entry(record: Any) -> Entry:
    return record["manifest_path"], record.get("sequence_number", 0), record.get("first_row_id")


def _row(record: Any) -> str:
    return str(record["data_file"]["file_path"])


def _records(body: bytes) -> list[Any]:
    return [*fastavro.reader(BytesIO(body))]


def _of(document: JsonObject, name: str) -> Mapping[str, Any]:
    found: Any = document.get(name, {})
    return dict(found)


def _list(document: JsonObject, name: str) -> list[Any]:
    found: Any = document.get(name, [])
    return list(found)
