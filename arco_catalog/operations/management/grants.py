"""Lists, adds and revokes grants: the privileges that catalog roles have on a catalog, on its namespaces, and on what
is in these."""

from collections.abc import Callable, Iterator

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.management.catalog_roles import CATALOG_ROLE
from arco_catalog.operations.management.entities import EntityChange, grant_not_found, listing
from arco_catalog.planning.access import Securable
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.privileges import GRANTABLE, Privilege
from arco_catalog.planning.securables import absent, chain_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import carry_out, load
from arco_catalog.state.entries import find_relation
from arco_catalog.state.fields import text
from arco_catalog.state.index import Edits, Index, Namespace, relation_key
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.policies import policy_key
from arco_catalog.state.roles import GrantEntry, catalog_role_key, grant_edits, granted_key, granted_to
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Grant:
    """One privilege on one securable, as a catalog role can have it. `kind` is the type of the securable, in the terms
    of the API."""

    kind: str
    securable: Securable
    privilege: Privilege

    @classmethod
    def of(cls, kind: str, securable: Securable, privilege: str) -> "Grant":
        """Returns the grant of a privilege. Raises `BadRequest` for an unknown kind, or a privilege that can't be
        granted on that kind."""
        grantable = GRANTABLE.get(kind)
        if grantable is None:
            raise BadRequest(f"No privilege can be granted or revoked on the type {kind!r}: use {', '.join(GRANTABLE)}")
        if privilege not in grantable:
            raise BadRequest(f"{privilege!r} is no privilege that can be granted on a {kind}, or revoked there")
        return cls(kind, securable, Privilege(privilege))


async def list_grants(session: Session, role: str) -> JsonObject:
    """Returns all grants of a catalog role, as the answer that lists them, an item for each privilege; without grants
    on tables, other relations and policies that are dropped. Raises `NotFound` for the role."""
    head = await session.head()
    state, index = session.state, head.index
    await load(state, index, Needs(keys=[catalog_role_key(role)]))
    granted = granted_to(CATALOG_ROLE.existing(index, role).entity)
    return await carry_out(state, index, _live_grants(index, granted), index.bytes_below(granted))


def _live_grants(index: Index, granted: str) -> Steps[JsonObject]:
    """Returns the listing of a role's grants, which have index keys that start with `granted`, without grants on
    securables that were dropped, also if another securable has the name now."""
    yield Needs(scans=[Scan(granted)])
    grants = [GrantEntry(entry) for _, entry in index.scan(granted)]
    keys = [_key(each.kind)(each.namespace, each.name) for each in grants if each.name is not None]
    yield Needs(keys=keys)
    live = {text(entry, "entity") for entry in index.get_all(keys).values()}
    shown = (each for each in grants if each.name is None or each.securable in live)
    return listing(
        "grants",
        [
            shown_grant(each.kind, each.namespace, each.name, privilege)
            for each in shown
            for privilege in each.privileges
        ],
    )


def _key(kind: str) -> Callable[[Namespace, str], str]:
    """Returns the function that makes the registry's key of a securable of this kind from namespace and name: that for
    policies, or that for relations."""
    return policy_key if kind == "policy" else relation_key


def shown_grant(kind: str, namespace: Namespace, name: str | None, privilege: str) -> JsonObject:
    """Returns a grant as answers show it: the privilege and the type of the securable, the namespace unless that is the
    catalog, and the name of an object in a namespace."""
    levels: list[JsonValue] = [*namespace]
    match kind:
        case "catalog":
            return {"type": "catalog", "privilege": privilege}
        case "namespace":
            return {"type": "namespace", "namespace": levels, "privilege": privilege}
        case _:
            return {"type": kind, "namespace": levels, f"{kind}Name": name, "privilege": privilege}


async def add_grant(session: Session, role: str, grant: Grant) -> None:
    """Gives a catalog role a privilege on a securable; if the role has it already, the commit has only an entry for the
    history. Raises `NotFound` for the role, and the errors of `absent` if the securable does not exist."""
    await run(session, _Change(session, role, grant, add=True))


async def revoke_grant(session: Session, role: str, grant: Grant, cascade: bool = False) -> None:
    """Takes a privilege on a securable from a catalog role; with `cascade` also the role's grants of that privilege on
    everything inside the securable. Raises the errors of `add_grant`, and `BadRequest` if the role does not have the
    privilege on the securable itself."""
    await run(session, _Change(session, role, grant, add=False, cascade=cascade))


class _Change(EntityChange):
    def __init__(self, session: Session, role: str, grant: Grant, add: bool, cascade: bool = False) -> None:
        detail: JsonObject = {
            "role": role,
            "type": grant.kind,
            "namespace": [*grant.securable.namespace],
            "name": grant.securable.name,
            "privilege": grant.privilege,
        }
        super().__init__(session, detail)
        self.kind = "add-grant" if add else "revoke-grant"
        self.status = 201
        self.role, self.grant, self.add, self.cascade = role, grant, add, cascade

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the grant of the role on the securable with the privilege, or without it; with `cascade` also the
        grants on everything inside. The body is None. Raises `NotFound` for the role, the errors of `absent` for the
        securable, an error if there is no such privilege to take away, and `PendingTransaction`."""
        yield Needs(keys=[catalog_role_key(self.role)])
        role = CATALOG_ROLE.existing(index, self.role)
        securable = self.grant.securable
        chain = yield from chain_of(index, securable)
        if chain is None:
            raise absent(securable)
        if securable.name is not None:
            relation = find_relation(index, securable.namespace, securable.name)
            if securable.kind != "policy" and relation is not None:
                relation.require_committed()
        yield Needs(keys=[granted_key(role.entity, chain[-1])])
        stored = index.get(granted_key(role.entity, chain[-1]))
        held = GrantEntry.new(
            securable=chain[-1],
            kind=self.grant.kind,
            namespace=securable.namespace,
            name=securable.name,
            privileges=() if stored is None else GrantEntry(stored).privileges,
        )
        privilege = self.grant.privilege.value
        if not self.add and privilege not in held.privileges:
            reason = f"catalog role {self.role} does not hold {privilege} on {securable}"
            raise grant_not_found(f"Nothing was revoked: {reason}")
        kept = {*held.privileges, privilege} if self.add else {*held.privileges} - {privilege}
        edits = dict(grant_edits(role.entity, held.with_privileges(kept)))
        if self.cascade:
            yield Needs(scans=[Scan(granted_to(role.entity))])
            for inside in _inside(index, role.entity, securable):
                if privilege in inside.privileges:
                    edits.update(grant_edits(role.entity, inside.with_privileges({*inside.privileges} - {privilege})))
        return edits, None


def _inside(index: Index, role: str, securable: Securable) -> Iterator[GrantEntry]:
    """Yields the grants of a role on everything inside a securable; none for a table, view or policy. The scan of
    `granted_to` must be loaded."""
    if securable.name is not None:
        return
    for _, stored in index.scan(granted_to(role)):
        grant = GrantEntry(stored)
        deeper = len(grant.namespace) > len(securable.namespace) or grant.name is not None
        if deeper and grant.namespace[: len(securable.namespace)] == securable.namespace:
            yield grant
