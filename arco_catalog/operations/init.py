"""Makes an empty catalog by the first commit of its registry, which changes no name: the catalog exists from then
on."""

from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.mutation import NoOp
from arco_catalog.protocol.registry_mutation import RegistryMutation, RegistryReadSet
from arco_catalog.state.needs import Steps, immediately

DONE = Document(204)


async def init_catalog(session: Session) -> Answer:
    """Makes an empty catalog, and returns an empty answer. Makes no commit if the catalog exists already."""
    return await run(session, _Init(session))


class _Init(RegistryMutation):
    kind = "init"

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change | NoOp]:
        """Returns the first commit of the registry, without index changes; `NoOp` if the registry has a commit. The
        response has no body."""
        there = read_set.head.version is not None
        return immediately(NoOp(DONE) if there else Change(edits={}, answer=DONE, detail={}))
