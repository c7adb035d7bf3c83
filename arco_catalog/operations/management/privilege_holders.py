"""Lists the principals that hold privileges on a table, view or namespace, and by which roles and grants
(docs/design/access.md#who-has-access)."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations import page_tokens
from arco_catalog.operations.listing import Paging
from arco_catalog.operations.management.privilege_check import grant_of, realm_head
from arco_catalog.operations.realms import Realm
from arco_catalog.planning.access import Securable
from arco_catalog.planning.privilege_holders import USUAL, paths_of, principal_roles_on
from arco_catalog.planning.privileges import GRANTABLE, Privilege
from arco_catalog.planning.reserved_namespace import is_reserved
from arco_catalog.planning.securables import absent, chain_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out, load
from arco_catalog.state.access import State
from arco_catalog.state.fields import text
from arco_catalog.state.needs import Needs
from arco_catalog.state.realm import (
    PrincipalEntry,
    find_principal,
    find_principal_role,
    members_of,
    principal_key,
    principal_role_key,
)
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass

MAX_ROWS = 50
"""The maximum number of rows of a page, and its default."""
MAX_SEGMENTS = 16
"""A page ends when it has used so many segments of both registries, except for the grants on the securable."""
MAX_ROLES = 200
"""The maximum number of principal roles that a page judges."""


@dataclass(frozen=True, slots=True)
class HoldersQuery:
    """What a list of holders is about: a securable, with its `kind` in terms of the API, and the privileges on it."""

    kind: str
    on: Securable
    privileges: Sequence[Privilege]

    @classmethod
    def of(cls, kind: str, on: Securable, privilege: str | None) -> "HoldersQuery":
        """Returns the query for one privilege, or the usual ones for None. Raises `BadRequest` for a privilege
        that can't be granted on this kind."""
        if privilege is None:
            return cls(kind, on, USUAL[kind])
        if privilege not in GRANTABLE[kind]:
            raise BadRequest(f"No holders can be listed: {privilege!r} is no privilege that can be granted on a {kind}")
        return cls(kind, on, (Privilege(privilege),))


async def list_holders(session: Session, realm: Realm | None, query: HoldersQuery, paging: Paging) -> JsonObject:
    """Returns a page of the principals that hold privileges, as the answer that lists them: a row for each principal
    and each of its roles, in order of the roles' names, then of the principals' ids. A role without principals has one
    row; principals that must rotate their credentials have none. A page may be empty although a later one is not.
    Without a realm there are no rows. Raises the errors of `absent`, and `BadRequest` for a token of another listing,
    and if another securable has the name now."""
    head = await session.head()
    chain = await carry_out(session.state, head.index, chain_of(head.index, query.on))
    if chain is None:
        raise absent(query.on)
    answer: JsonObject = {"checked": session.access.checks_grants, "access": [], "next-page-token": None}
    if realm is None:
        return answer
    start = ("", "")
    if paging.token:
        start = _start(await page_tokens.redeem(session, paging.token), chain[-1])
    registry = realm.lookups()
    size = min(paging.size or MAX_ROWS, MAX_ROWS)
    page = _Page(session, head, registry, await realm_head(session, registry), query, size)
    stop = await page.fill(await carry_out(session.state, head.index, principal_roles_on(head.index, chain)), start)
    token = None if stop is None else await page_tokens.issue(session, [chain[-1], *stop])
    return {**answer, "access": [*page.rows], "next-page-token": token}


def _start(position: JsonValue, entity: str) -> tuple[str, str]:
    """Returns the role's name and the principal's id at which the page of a token starts. Raises `BadRequest` if the
    token is of a securable with another entity id than `entity`, or is no token of such a list."""
    match position:
        case [str(listed), str(role), str(principal)]:
            if listed != entity:
                raise page_tokens.expired()
            return role, principal
    raise page_tokens.of_another_listing()


@dataclass(slots=True)
class _Page:
    """A page of rows that is being filled with at most `size`, until it has judged `MAX_ROLES` roles or used
    `MAX_SEGMENTS` segments, by one HEAD of the catalog and one of the realm, which is in `registry`."""

    session: Session
    head: RegistryState
    registry: State
    realm_head: RegistryState
    query: HoldersQuery
    size: int
    rows: list[JsonObject] = field(default_factory=list)
    judged: int = 0
    before: int = 0

    async def fill(self, roles: Mapping[str, str], start: tuple[str, str]) -> tuple[str, str] | None:
        """Adds to the page the rows of these principal roles, with the names by their ids, in order of names, from
        `start` on, the name of a role and the id of a principal. Stops when the page is full, has used too many
        segments, or has judged `MAX_ROLES` roles. Returns where the next page starts, None if there is none."""
        self.before = self._segments
        ordered = sorted((name, entity) for entity, name in roles.items() if name >= start[0])
        for number, (name, entity) in enumerate(ordered):
            if number and (number == MAX_ROLES or self._spent):
                return name, ""
            self.session.check_deadline()
            await asyncio.sleep(0)  # noqa: TID251 - no time passes: a securable may have grants to very many roles
            stop = await self._add_role(name, entity, start[1] if name == start[0] else "")
            if stop is not None:
                return name, stop
        return None

    @property
    def _spent(self) -> bool:
        """Whether this page of holders has used as many segments of both registries as it may."""
        return self._segments - self.before >= MAX_SEGMENTS

    @property
    def _segments(self) -> int:
        """The number of segments of the registries of the catalog and of the realm that this request has used, read or
        found in the process's cache."""
        return self.session.state.used_segments + self.registry.used_segments

    async def _add_role(self, name: str, entity: str, start: str) -> str | None:
        """Adds the rows of one role from the principal with the id `start` on, unless the realm no longer has the role
        or the role has no such privilege: none for principals that must rotate their credentials, and one without a
        principal if the role has no principals. Returns the id of the first principal that is left for the next page,
        empty for the row without a principal, None if all rows were added."""
        index = self.realm_head.index
        await load(self.registry, index, Needs(keys=[principal_role_key(name)]))
        role = find_principal_role(index, name)
        if role is None or role.entity != entity:
            return None
        by_flag = {flag: await self._privileges(entity, runs_pipeline=flag) for flag in self._flags}
        if not any(by_flag.values()):
            return None
        judged = self.judged
        async with aclosing(self._members(entity, start)) as members:
            async for member, principal in members:
                if len(self.rows) == self.size or (self.judged > judged and self._spent):
                    return member
                self.judged += 1
                if principal is not None and not principal.must_rotate:
                    self._add_row(name, principal.name, by_flag[self._flag_of(principal)])
        if self.judged == judged and not start:
            if len(self.rows) == self.size:
                return ""
            self._add_row(name, None, by_flag[False])
        return None

    @property
    def _flags(self) -> Sequence[bool]:
        """The values of `runs_pipeline` for which privileges are computed: both if a privilege is reserved for the
        pipeline here, else False alone."""
        reserved = any(is_reserved(each, self.query.on.namespace) for each in self.query.privileges)
        return (False, True) if reserved else (False,)

    def _flag_of(self, principal: PrincipalEntry) -> bool:
        """Whether a principal runs the pipeline; False on a page without privileges that are reserved for it."""
        return principal.runs_pipeline and True in self._flags

    async def _privileges(self, role: str, *, runs_pipeline: bool) -> Sequence[JsonValue]:
        """Returns those of the query's privileges that a principal has by this role alone, with a grant for each.
        `runs_pipeline` is whether the principal runs the pipeline, for which some privileges are reserved."""
        index, query = self.head.index, self.query
        paths = paths_of(index, role, query.privileges, query.on, runs_pipeline=runs_pipeline)
        return [
            {
                "privilege": privilege,
                "catalog-role": path.catalog_role,
                "grant": grant_of(path, query.kind, query.on),
            }
            for privilege, path in await carry_out(self.session.state, index, paths)
        ]

    async def _members(self, role: str, start: str) -> AsyncGenerator[tuple[str, PrincipalEntry | None], None]:
        """Yields the ids of the principals that have a principal role, from the id `start` on, with their entries, None
        for a principal that does not exist."""
        index, prefix = self.realm_head.index, members_of(role)
        for key_range in index.key_ranges(prefix, prefix + start):
            await load(self.registry, index, Needs(segments=[] if key_range.ref is None else [key_range.ref]))
            for key, entry in index.entries(key_range, index.loaded(key_range.ref)):
                principal = text(entry, "name")
                await load(self.registry, index, Needs(keys=[principal_key(principal)]))
                found, entity = find_principal(index, principal), key.removeprefix(prefix)
                yield entity, found if found is not None and found.entity == entity else None

    def _add_row(self, role: str, principal: str | None, privileges: Sequence[JsonValue]) -> None:
        """Adds a row with the privileges that a principal has by a role, if there are any; `principal` is None for a
        role that no principal has."""
        if privileges:
            self.rows.append({"principal-role": role, "principal": principal, "privileges": [*privileges]})
