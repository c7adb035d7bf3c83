"""Deletes claims on metadata files that were removed (docs/design/collection.md#rule-8)."""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.planning.collection import Kind
from arco_catalog.state.fields import parse_record, text
from arco_catalog.state.metadata_claim import Claim
from arco_catalog.upkeep.collection.batch_runner import BatchRunner, run_older
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Listed


async def collect_claims(run: Run, entities: Entities, runner: BatchRunner) -> None:
    """Deletes claims that are older than the retention of orphans, on metadata files that were claimed for removal and
    no longer exist; a dry run only counts them. A claim by a registration stays, since the registered file is in use;
    so does a claim that can't be read, or on a file in no store of this catalog."""
    await run_older(runner, run, entities, run.paths.metadata_claims, run.retention.orphans_ms, _collect)


async def _collect(run: Run, entities: Entities, batch: Sequence[Listed]) -> None:
    """Deletes the old claims of this batch that are for a removal, if the metadata file no longer exists. A claim that
    can't be read is kept, and adds to the unreadable ones. A dry run only counts."""
    gone = await run.each(batch, lambda each: run.unless_unreadable(each.key, _is_over(run, each)))
    await run.collect(Kind.CLAIM, [each for each, yes in zip(batch, gone, strict=True) if yes])


async def _is_over(run: Run, listed: Listed) -> bool:
    """Whether a claim is for a removal and the metadata file no longer exists. False also if the claim no longer
    exists, or if the file is in no store of this catalog."""
    found = await run.read(listed.key)
    if found is None:
        return False
    document = parse_record(found.body, listed.key)
    if text(document, "claim") != Claim.REMOVED:
        return False
    try:
        return not await run.session.files.exists(text(document, "file"))
    except BadRequest:
        return False  # the file is in no store of this catalog, so its state is unknown
