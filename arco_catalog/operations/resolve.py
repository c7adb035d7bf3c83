"""Loads several tables and views in one request, each as it is at a moment of its own (docs/design/resolve.md). HEAD is
read once for all, then the pointer of each name; HEAD again only if a name changed in between or a file is missing."""

from collections.abc import Iterable, Mapping, Sequence

from arco_catalog.iceberg.errors import Forbidden, ForbiddenObjects, NoSuchTable, NoSuchView, NotFound, Refusal
from arco_catalog.operations.load import CurrentState, load_under
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.names import Identifier, dotted, no_such
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out, load, relation_entry
from arco_catalog.state.index import relation_key
from arco_catalog.state.needs import Needs, immediately
from arco_catalog.state.registry import RegistryState

MAX_NAMED = 10
"""The number of names that a message lists."""


async def hidden_names(
    session: Session, head: RegistryState, identifiers: Iterable[Identifier]
) -> Mapping[Identifier, Refusal]:
    """Returns the names that the caller may not know of, by this HEAD, each with the error of a load, which is that for
    a missing table. Raises `ForbiddenObjects` if the caller may know of some, and not load them."""
    if not session.is_restricted:
        return {}
    hidden: dict[Identifier, Refusal] = {}
    forbidden: dict[Identifier, Forbidden] = {}
    names = [*identifiers]
    await session.access.prepare(session.state, head, lambda _: immediately([*map(requirement_of, names)]))
    for identifier in names:
        session.check_deadline()
        judged = session.access.refusal(head.index, requirement_of(identifier))
        match await carry_out(session.state, head.index, judged):
            case Forbidden() as refusal:
                forbidden[identifier] = refusal
            case Refusal() as refusal:
                hidden[identifier] = refusal
    if forbidden:
        raise _forbidden(forbidden)
    return hidden


def requirement_of(identifier: Identifier) -> Requirement:
    """Returns what a caller needs to load the table or view with a name."""
    on = Securable(*identifier, "table-like")
    return Requirement(Privilege.TABLE_READ_PROPERTIES, on, on_view=Privilege.VIEW_READ_PROPERTIES)


def _forbidden(refusals: Mapping[Identifier, Forbidden]) -> ForbiddenObjects:
    """Returns one error for all these names, of which there must be one: with the message and the missing privilege of
    the first one, the number of the others at the end of the message, and all names as identifiers."""
    first = next(iter(refusals.values()))
    more = "" if len(refusals) == 1 else f" (and on {len(refusals) - 1} more of the tables and views in the request)"
    error = ForbiddenObjects(f"{first.message}{more}", [(*namespace, name) for namespace, name in refusals])
    error.denied = first.denied
    return error


def listed(identifiers: Sequence[Identifier]) -> str:
    """Returns the names of tables and views as a text for a message: at most `MAX_NAMED`, and how many more there
    are."""
    names = ", ".join(dotted(*identifier) for identifier in identifiers[:MAX_NAMED])
    return names if len(identifiers) <= MAX_NAMED else f"{names} and {len(identifiers) - MAX_NAMED} more"


async def load_names(session: Session, head: RegistryState, identifiers: Iterable[Identifier]) -> None:
    """Loads the segments of HEAD's index in which entries of these names may be; none if HEAD has the whole index."""
    if head.index.directory.refs:  # else there is nothing to load
        await load(session.state, head.index, Needs(keys=[relation_key(*identifier) for identifier in identifiers]))


async def resolve_one(session: Session, head: RegistryState, identifier: Identifier) -> CurrentState | Refusal:
    """Returns the current state of the table or view with a name in a HEAD that was read for this request and by which
    the caller may load it. Returns the error of a load if there is none, or if its metadata file is missing. Raises the
    other errors of a load."""
    namespace, name = identifier
    entry = await relation_entry(session.state, head.index, namespace, name)
    if entry is None or entry.kind not in ("table", "view"):
        return no_such("table-like", namespace, name)

    async def judge(later: RegistryState) -> None:
        if later is not head:
            for refusal in (await hidden_names(session, later, [identifier])).values():
                raise refusal

    try:
        return await load_under(session, head, namespace, name, entry.kind, judge)
    except (NoSuchTable, NoSuchView, NotFound) as missing:
        return missing
