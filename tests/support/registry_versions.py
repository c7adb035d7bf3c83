"""The registry of a later version, raised without a draw of ids, which would move what runs of a seed do."""

from dataclasses import replace

from arco_catalog.state.access import State
from arco_catalog.state.commit_record import VERSION_WITH_CANCELLATIONS
from arco_catalog.state.runtime import ulid_of
from storage_backends import Applied


async def raise_version(state: State) -> None:
    """Makes the registry commit after which takeovers cancel attempts by id."""
    head = await state.head()
    raised = replace(head, document={**head.document, "version": VERSION_WITH_CANCELLATIONS})
    at_ms = head.at_ms + 1
    commit = raised.successor(commit=ulid_of(at_ms, bytes(10)), at_ms=at_ms, edits={}, operations=[])
    await state.create(state.paths.registry_commit(str(commit.id)), commit.commit_body)
    assert isinstance(await state.move_head(commit, head.version), Applied)
