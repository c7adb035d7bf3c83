"""Applies a commit to the metadata file of a table or view: a pure function, which takes time in proportion to the size
of both. So callers run it in a worker thread, unless both are small."""

from arco_catalog.iceberg.checkpoint import Checkpoint
from arco_catalog.iceberg.json import JsonObject, dumps_long
from arco_catalog.iceberg.outline import let_long_parts_go, outline
from arco_catalog.iceberg.parsing import parse_metadata
from arco_catalog.planning.kinds import AnyCommit, Base, Semantics
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AppliedUpdates:
    """The result of applying a commit to the metadata file of a table or view, its base: the base's document, the new
    document, and `body`, the bytes of the new metadata file in full. If the commit changes nothing, `document` is None
    and `body` is empty. Both documents are outlines: without long parts such as schemas and snapshots."""

    base: JsonObject
    document: JsonObject | None
    body: bytes


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
    """Checks the requirements of a commit, and applies the updates to `base`, the bytes of the metadata file
    `base_file`. The result has outlines of both documents and the bytes of the new one; if nothing changes, only the
    outline of the base. `size` is roughly the bytes of the new file, and `name` the full name of the table or view, for
    messages. Raises `Refusal`, `UnreadableMetadata`, and what `checkpoint` raises."""
    before = parse_metadata(base, base_file)
    try:
        checkpoint()
        after = semantics.apply(Base(before, base_file, name), commit, now_ms, checkpoint)
        if after is None:
            return AppliedUpdates(outline(before), None, b"")
        return AppliedUpdates(outline(before), outline(after), dumps_long(after, size))
    finally:  # `after` shares parts with `before`, but it is serialised by now
        let_long_parts_go(before, size)
