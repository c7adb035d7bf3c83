"""What a commit makes of its base: pure, and as long as both, so that it is done beside the event loop."""

from arco_catalog.iceberg.checkpoint import Checkpoint
from arco_catalog.iceberg.errors import Broken
from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.operations.kinds import AnyCommit, Semantics
from arco_catalog.operations.table_view import Applied


def apply(
    semantics: Semantics,
    base_file: str,
    base: bytes,
    commit: AnyCommit,
    *,
    now_ms: int,
    name: str,
    checkpoint: Checkpoint,
) -> Applied:
    """Checks the requirements and applies the updates to the file's bytes. Raises `Refusal`, `Broken` for bytes that
    are no document, and what `checkpoint` does."""
    before = loads(base)
    if not isinstance(before, dict):
        raise Broken(f"{base_file} is not a JSON object")
    checkpoint()
    after = semantics.apply(before, commit, now_ms=now_ms, base_file=base_file, name=name, checkpoint=checkpoint)
    return Applied(before, after, b"" if after is None else dumps(after))
