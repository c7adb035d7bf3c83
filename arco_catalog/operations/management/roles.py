"""The common parts of principal roles and catalog roles: they are listed, created, shown and changed in one way."""

from collections.abc import Callable, Mapping

from arco_catalog.iceberg.errors import AlreadyExists, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management.entities import (
    EntityChange,
    body_of,
    check_entity_name,
    check_entity_properties,
    check_version,
    entries,
    listing,
    load_keys,
)
from arco_catalog.planning.attempt import Attempt
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.roles import FIRST_VERSION, RoleEntry
from arco_catalog.state.version_floors import first_version
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RoleKind:
    """One of the two kinds of roles, with the operations on roles of this kind: its name in messages, the prefix of the
    index keys of all its roles, the index key of a role's name, and the JSON of a role in answers."""

    what: str
    prefix: str
    key: Callable[[str], str]
    shown: Callable[[RoleEntry], JsonObject]

    def existing(self, index: Index, name: str) -> RoleEntry:
        """Returns the role of this kind (principal role or catalog role) with a name; its key must be loaded. Raises
        `NotFound`."""
        entry = index.get(self.key(name))
        if entry is None:
            raise NotFound(f"{self.what.capitalize()} does not exist: {name}")
        return RoleEntry(entry)

    async def find(self, session: Session, name: str) -> RoleEntry:
        """Returns the role of this kind (principal role or catalog role) with a name, by the registry's current HEAD.
        Raises `NotFound`."""
        return self.existing(await load_keys(session, [self.key(name)]), name)

    async def list_all(self, session: Session) -> JsonObject:
        """Returns all roles of this kind (the principal roles of a realm, or the catalog roles of a catalog), as the
        answer that lists them."""
        return listing("roles", [self.shown(RoleEntry(entry)) for entry in await entries(session, self.prefix)])

    async def get(self, session: Session, name: str) -> JsonObject:
        """Returns the JSON of one role of this kind (principal role or catalog role), as answers show it. Raises
        `NotFound`."""
        return self.shown(await self.find(session, name))

    async def create(
        self, session: Session, name: str, properties: Mapping[str, str], **additional: bool
    ) -> JsonObject:
        """Creates a role of this kind with these additional fields in the session's registry (the realm's for a
        principal role, a catalog's for a catalog role), and returns its JSON. Raises `AlreadyExists`, and `BadRequest`
        for an invalid name or invalid properties."""
        check_entity_name(name, self.what)
        check_entity_properties(properties, self.what)
        return body_of(await run(session, _Create(session, self, name, properties, additional)))

    async def update(self, session: Session, name: str, expected: int, properties: Mapping[str, str]) -> JsonObject:
        """Replaces the properties of a role of this kind (principal role or catalog role), and returns its JSON. Raises
        `NotFound`, `BadRequest` for invalid properties, and `CommitFailed` if the role's version is not the `expected`
        one."""
        check_entity_properties(properties, self.what)
        return body_of(await run(session, _Update(session, self, name, expected, properties)))


class _RoleChange(EntityChange):
    def __init__(self, session: Session, role: RoleKind, does: str, name: str, properties: Mapping[str, str]) -> None:
        super().__init__(session, {"name": name})
        self.kind = f"{does}-{role.what.replace(' ', '-')}"
        self.role, self.name, self.properties = role, name, properties

    def made(self, role: RoleEntry) -> tuple[Edits, JsonObject | None]:
        """Returns the index change that stores this new or changed role, and the answer that shows it."""
        return {self.role.key(self.name): role.json}, self.role.shown(role)


class _Create(_RoleChange):
    status = 201

    def __init__(
        self, session: Session, role: RoleKind, name: str, properties: Mapping[str, str], additional: Mapping[str, bool]
    ) -> None:
        super().__init__(session, role, "create", name, properties)
        self.additional = additional

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the entry of the new role under the name, with a higher version than a dropped role of the name had.
        The body has the role. Raises `AlreadyExists`."""
        yield Needs(keys=[self.role.key(self.name)])
        if index.get(self.role.key(self.name)) is not None:
            raise AlreadyExists(f"{self.role.what.capitalize()} already exists: {self.name}")
        return self.made(
            RoleEntry.new(
                entity=attempt.entity,
                name=self.name,
                properties=self.properties,
                at_ms=attempt.now_ms,
                version=(yield from first_version(index, self.role.key(self.name), FIRST_VERSION)),
                **self.additional,
            )
        )


class _Update(_RoleChange):
    status = 200

    def __init__(
        self, session: Session, role: RoleKind, name: str, expected: int, properties: Mapping[str, str]
    ) -> None:
        super().__init__(session, role, "update", name, properties)
        self.expected = expected

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the role's entry with these properties in place of all others, and the next version. The body has
        the role. Raises `NotFound`, and `CommitFailed` for another version than the expected one."""
        yield Needs(keys=[self.role.key(self.name)])
        before = self.role.existing(index, self.name)
        check_version(before, self.expected, self.role.what.capitalize())
        return self.made(before.updated(attempt.now_ms, properties={**self.properties}))
