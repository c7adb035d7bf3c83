"""The first commit of a registry, which changes no name: from then on the catalog is there."""

from arco_catalog.operations.registry_change import Change, RegistryMutation, RegistryReadSet
from arco_catalog.protocol.answers import Answer, Document
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.mutation import Attempt, NoOp

DONE = Document(204)


async def init_catalog(session: Session) -> Answer:
    """Makes an empty catalog. Where there is one already nothing is done."""
    return await run(session, _Init(session))


class _Init(RegistryMutation):
    kind = "init"

    def change(self, view: RegistryReadSet, attempt: Attempt) -> Change | NoOp:
        if view.head.version is not None:
            return NoOp(DONE)
        return Change(edits={}, answer=DONE, detail={})
