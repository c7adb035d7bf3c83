"""The objects of a realm by which two realms are compared: principals, roles, catalogs, who has which role, and grants;
and how they are read through the management API."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.cli.management import FOREIGN, ApiClient
from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import format_identifier
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.fields import objects, optional_text, text, texts

T = TypeVar("T")

AT_ONCE = 8
"""Requests that are sent concurrently."""
MAX_OBJECTS = 500_000
"""Maximum number of objects of a realm that are read."""


class Kind(StrEnum):
    """The kinds of objects, in the order in which they are made."""

    PRINCIPAL = "principal"
    PRINCIPAL_ROLE = "principal role"
    ASSIGNMENT = "role of principal"
    CATALOG = "catalog"
    CATALOG_ROLE = "catalog role"
    USE = "catalog role of role"
    GRANT = "grant"


@dataclass(frozen=True, slots=True)
class RealmObject:
    """An object of a realm. `names` identify it in its kind: of a principal, principal role or catalog its
    name; of a catalog role the catalog and the role; of an assignment the principal and the role; of a use the catalog,
    the catalog role and the principal role; of a grant the catalog, the role, the type, the privilege and the levels of
    the securable. `document` has the other fields, as the management API shows them."""

    kind: Kind
    names: tuple[str, ...]
    document: JsonObject = field(default_factory=dict, compare=False)

    @property
    def catalog(self) -> str | None:
        """The name of the catalog that it is in or is; None for an object of the realm."""
        return self.names[0] if self.kind in (Kind.CATALOG, Kind.CATALOG_ROLE, Kind.USE, Kind.GRANT) else None

    def __str__(self) -> str:
        if self.kind is Kind.GRANT:
            catalog, role, kind, privilege, *levels = self.names
            on = f"{kind} {format_identifier((catalog, *levels))}"
            return f"{privilege} on {on} to {role}"
        if self.kind is Kind.ASSIGNMENT:
            return f"{format_identifier(self.names[1:])} of {self.names[0]}"
        if self.kind is Kind.USE:
            return f"{format_identifier(self.names[:-1])} of {self.names[-1]}"
        return format_identifier(self.names)


def grant_of(catalog: str, role: str, grant: JsonObject) -> RealmObject:
    """Returns the object of a grant in the form of the management API. Raises `InternalError` for a malformed one."""
    kind = text(grant, "type")
    name = optional_text(grant, f"{kind}Name")
    levels = (*texts(grant, "namespace"), *(() if name is None else (name,)))
    return RealmObject(Kind.GRANT, (catalog, role, kind, text(grant, "privilege"), *levels), grant)


async def read_catalogs(api: ApiClient, names: Collection[str]) -> Sequence[RealmObject]:
    """Returns the catalogs of a realm with these `names`, all if `names` is empty. Raises `CliError`, also if one is
    missing."""
    listed = _named(await api.send("GET", "catalogs", has="catalogs"), "catalogs", Kind.CATALOG)
    found = [item for item in listed if not names or item.names[0] in names]
    missing = {*names} - {item.names[0] for item in found}
    if missing:
        raise CliError(f"there is no catalog {', '.join(map(repr, sorted(missing)))} at the source: check --catalog")
    return found


async def read_realm(api: ApiClient, catalogs: Sequence[RealmObject]) -> Sequence[RealmObject]:
    """Returns the objects of a realm, of these catalogs, in the order in which they are made. Raises `CliError`, also
    if an answer has another form than the management API's, and if there are too many objects."""
    found: list[RealmObject] = []
    try:
        async for item in _read(api, catalogs):
            found.append(item)
            if len(found) > MAX_OBJECTS:
                raise CliError(
                    f"the source, or the realm here, has more than {MAX_OBJECTS:,} objects: choose some catalogs by "
                    "--catalog; what was imported so far is kept"
                )
    except InternalError as error:
        raise CliError(FOREIGN) from error
    except NotThere as error:
        raise CliError(
            f"`arco import realm` stopped, because the realm at the source or the one here changed while it was read: "
            f"{error}; what was imported so far is kept: try again"
        ) from error
    return found


async def _read(api: ApiClient, catalogs: Sequence[RealmObject]) -> AsyncIterator[RealmObject]:
    """Yields the principals, principal roles and assignments of a realm, then these catalogs with their roles, the
    principal roles that have those, and their grants."""
    principals = _named(await api.send("GET", "principals", has="principals"), "principals", Kind.PRINCIPAL)
    roles = _named(await api.send("GET", "principal-roles", has="roles"), "roles", Kind.PRINCIPAL_ROLE)
    for item in (*principals, *roles):
        yield item

    async def assigned(principal: RealmObject) -> Sequence[RealmObject]:
        [name] = principal.names
        listed = await api.send("GET", "principals", name, "principal-roles", has="roles")
        return [RealmObject(Kind.ASSIGNMENT, (name, text(role, "name"))) for role in objects(listed, "roles")]

    async for item in _each(principals, assigned):
        yield item
    for catalog in catalogs:
        yield catalog
        async for item in _read_roles(api, catalog.names[0]):
            yield item


async def _read_roles(api: ApiClient, catalog: str) -> AsyncIterator[RealmObject]:
    """Yields the roles of a catalog, then the principal roles that have them, then their grants."""
    path = ("catalogs", catalog, "catalog-roles")
    listed = _named(await api.send("GET", *path, has="roles"), "roles", Kind.CATALOG_ROLE, catalog)
    for item in listed:
        yield item

    async def users(role: RealmObject) -> Sequence[RealmObject]:
        name = role.names[1]
        using = objects(await api.send("GET", *path, name, "principal-roles", has="roles"), "roles")
        return [RealmObject(Kind.USE, (catalog, name, text(user, "name"))) for user in using]

    async def grants(role: RealmObject) -> Sequence[RealmObject]:
        name = role.names[1]
        held = objects(await api.send("GET", *path, name, "grants", has="grants"), "grants")
        return [grant_of(catalog, name, grant) for grant in held]

    for read in (users, grants):
        async for item in _each(listed, read):
            yield item


def _named(answer: JsonObject, name: str, kind: Kind, *within: str) -> Sequence[RealmObject]:
    """Returns the objects that an answer lists, each name once. Raises `CliError` for one without a name."""
    found: dict[str, RealmObject] = {}
    for item in objects(answer, name):
        own = optional_text(item, "name")
        if not own:
            raise CliError(FOREIGN)
        found.setdefault(own, RealmObject(kind, (*within, own), item))
    return [*found.values()]


async def _each(
    items: Sequence[T], read: Callable[[T], Awaitable[Sequence[RealmObject]]]
) -> AsyncIterator[RealmObject]:
    """Yields, in the order of the items, what `read` returns for each; reads up to `AT_ONCE` concurrently."""

    async def one(item: T) -> Sequence[RealmObject]:
        return await read(item)

    for start in range(0, len(items), AT_ONCE):
        for found in await gather(*(one(item) for item in items[start : start + AT_ONCE])):
            for item in found:
                yield item


def by_name(found: Sequence[RealmObject]) -> Mapping[tuple[Kind, tuple[str, ...]], RealmObject]:
    """Returns the objects by kind and names."""
    return {(item.kind, item.names): item for item in found}
