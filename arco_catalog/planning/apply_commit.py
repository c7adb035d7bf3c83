"""What a commit makes of its base: pure, and as long as both, so that it is done beside the event loop."""

from dataclasses import dataclass

from arco_catalog.iceberg.checkpoint import Checkpoint
from arco_catalog.iceberg.json import JsonObject, dumps_long
from arco_catalog.iceberg.json_pieces import let_go
from arco_catalog.iceberg.parsing import parse_metadata
from arco_catalog.planning.kinds import AnyCommit, Base, Semantics

_LONG_PARTS = frozenset(
    (
        "encryption-keys",
        "partition-spec",
        "partition-specs",
        "partition-statistics",
        "schema",
        "schemas",
        "snapshot-log",
        "snapshots",
        "sort-orders",
        "statistics",
        "version-log",
        "versions",
    )
)
"""What is long in metadata, and what nothing but the next commit, which reads it anew, needs of it."""


@dataclass(frozen=True, slots=True)
class AppliedUpdates:
    """What a commit makes of its base: the document and the bytes that are to follow it, None and none of them where it
    changes nothing. Both documents are outlines."""

    base: JsonObject
    document: JsonObject | None
    body: bytes


def outline(document: JsonObject) -> JsonObject:
    """Metadata without its long parts."""
    return {name: value for name, value in document.items() if name not in _LONG_PARTS}


def let_long_parts_go(document: JsonObject) -> None:
    """Empties the long parts of metadata that nobody needs any more. Whoever let go of the whole document instead would
    hold everybody up, as long as it takes to take all of it down."""
    for name in _LONG_PARTS & document.keys():
        let_go(document[name])


def apply(
    semantics: Semantics,
    base_file: str,
    base: bytes,
    commit: AnyCommit,
    *,
    size: int,
    now_ms: int,
    name: str,
    checkpoint: Checkpoint,
) -> AppliedUpdates:
    """Checks the requirements and applies the updates to the file's bytes. What comes back has outlines of both
    documents. Raises `Refusal`, `UnreadableMetadata`, and what `checkpoint` does."""
    before = parse_metadata(base, base_file)
    try:
        checkpoint()
        after = semantics.apply(Base(before, base_file, name), commit, now_ms, checkpoint)
        if after is None:
            return AppliedUpdates(outline(before), None, b"")
        return AppliedUpdates(outline(before), outline(after), dumps_long(after, size))
    finally:  # of what follows, what is the base's goes too, the rest is the commit's: neither is needed
        let_long_parts_go(before)
