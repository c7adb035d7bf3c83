"""Creates, shows, lists, changes and drops the principals of a realm, and replaces their credentials."""

from collections.abc import Callable, Mapping

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management.entities import (
    EntityChange,
    body_of,
    check_entity_name,
    check_entity_properties,
    check_version,
    described,
    entries,
    listing,
    load_keys,
)
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.judgement import principal_under
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.realm import (
    PrincipalEntry,
    Secret,
    client_key,
    find_principal,
    members_of,
    name_under,
    names_under,
    principal_edits,
    principal_id_key,
    principal_key,
    principals,
    roles_of,
    subject_key,
)
from arco_catalog.state.roles import FIRST_VERSION
from arco_catalog.state.version_floors import first_version, raised_floor
from storage_backends.lazy_dataclass import dataclass

SUBJECT = "arco.subject"
"""Property that registers a principal for tokens of another issuer. Its value is the issuer, a space, the subject."""
MAX_SUBJECT = 1_024
"""Maximum number of characters of `SUBJECT`."""
ROOT_PRINCIPAL = "root"


@dataclass(frozen=True, slots=True)
class NewCredentials:
    """New credentials for a principal: the client id, and the secret as the realm stores it."""

    client_id: str
    secret: Secret


def shown(principal: PrincipalEntry) -> JsonObject:
    """Returns a principal as answers show it."""
    return {**described(principal), "clientId": principal.client_id}


async def list_principals(session: Session) -> JsonObject:
    """Returns all principals of the realm, in order of names, in the form of the response."""
    return listing("principals", [shown(PrincipalEntry(entry)) for entry in await entries(session, principals())])


async def get_principal(session: Session, name: str) -> JsonObject:
    """Returns the JSON of one principal. Raises `NotFound`."""
    return shown(existing_principal(await load_keys(session, [principal_key(name)]), name))


def existing_principal(index: Index, name: str) -> PrincipalEntry:
    """Returns the entry of the principal with a name; its key must be loaded. Raises `NotFound`."""
    principal = find_principal(index, name)
    if principal is None:
        raise NotFound(f"Principal does not exist: {name}")
    return principal


async def create_principal(
    session: Session, name: str, properties: Mapping[str, str], credentials: NewCredentials, must_rotate: bool
) -> JsonObject:
    """Creates a principal with these credentials, and returns an answer with its JSON under `principal`, without the
    secret. With `must_rotate` it may do nothing until it has rotated these credentials. Raises `AlreadyExists` if the
    name, the client id or the subject in `properties` is taken, and `BadRequest` for an invalid name or invalid
    properties."""
    check_entity_name(name, "principal")
    check_entity_properties(properties, "principal")
    return body_of(await run(session, _Create(session, name, properties, credentials, must_rotate)))


async def update_principal(session: Session, name: str, expected: int, properties: Mapping[str, str]) -> JsonObject:
    """Replaces the properties of a principal, and returns its JSON. Raises `NotFound`, `BadRequest` for invalid
    properties, `AlreadyExists` if another principal has the subject in `properties`, and `CommitFailed` if the
    principal's version is not the `expected` one."""
    check_entity_properties(properties, "principal")
    return body_of(await run(session, _Update(session, name, expected, properties)))


async def change_credentials(
    session: Session, name: str, made: Callable[[PrincipalEntry], NewCredentials], *, rotate: bool
) -> JsonObject:
    """Gives a principal the credentials that `made` returns for it, after which it need not rotate them, and returns an
    answer with its JSON under `principal`. With `rotate` the newest secret stays valid, so that clients work until they
    have the new one; else all previous secrets become invalid. Raises `NotFound`, and `AlreadyExists` if another
    principal has the client id."""
    return body_of(await run(session, _ChangeCredentials(session, name, made, rotate)))


async def drop_principal(session: Session, name: str) -> None:
    """Drops a principal, and takes all principal roles from it: tokens of it are invalid from now on. Raises
    `NotFound`, and `BadRequest` for the root principal."""
    await run(session, _Drop(session, name))


class _Create(EntityChange):
    kind = "create-principal"
    status = 201

    def __init__(
        self,
        session: Session,
        name: str,
        properties: Mapping[str, str],
        credentials: NewCredentials,
        must_rotate: bool,
    ) -> None:
        super().__init__(session, {"name": name})
        self.name, self.properties, self.credentials, self.must_rotate = name, properties, credentials, must_rotate

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the entries of the new principal under name, id, client id and subject. The body has the principal,
        without the secret. Raises `AlreadyExists` if another has the name, the client id or the subject, and
        an error for an invalid subject."""
        subject = self.properties.get(SUBJECT)
        keys = [principal_key(self.name), client_key(self.credentials.client_id)]
        yield Needs(keys=keys if subject is None else [*keys, subject_key(subject)])
        if find_principal(index, self.name) is not None:
            raise AlreadyExists(f"Principal already exists: {self.name}")
        if index.get(client_key(self.credentials.client_id)) is not None:
            raise AlreadyExists(
                f"Principal {self.name} was not created, because another has the random client id "
                f"{self.credentials.client_id}: try again, for another id"
            )
        _check_subject(index, subject, self.name)
        principal = PrincipalEntry.new(
            entity=attempt.entity,
            name=self.name,
            properties=self.properties,
            at_ms=attempt.now_ms,
            version=(yield from first_version(index, principal_key(self.name), FIRST_VERSION)),
            client_id=self.credentials.client_id,
            secrets=[self.credentials.secret.json],
            must_rotate=self.must_rotate,
            subject=subject,
        )
        return principal_edits(principal), {"principal": shown(principal)}


def _check_subject(index: Index, subject: str | None, name: str) -> None:
    """Raises `BadRequest` for an invalid subject, and `AlreadyExists` if another principal has it. None is valid."""
    if subject is None:
        return
    if len(subject) > MAX_SUBJECT or subject.count(" ") < 1 or not subject.isprintable():
        raise BadRequest(
            f"The property {SUBJECT} must be an issuer, a space and a subject, in at most {MAX_SUBJECT:,} printable "
            f"characters, not {subject[:256]!r}"
        )
    owner = name_under(index, subject_key(subject))
    if owner is not None and owner != name:
        raise AlreadyExists(
            f"Principal {owner} has the property {SUBJECT} with the value {subject}, which only one principal may have"
        )


class _Update(EntityChange):
    kind = "update-principal"
    status = 200

    def __init__(self, session: Session, name: str, expected: int, properties: Mapping[str, str]) -> None:
        super().__init__(session, {"name": name})
        self.name, self.expected, self.properties = name, expected, properties

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the principal's entry with these properties in place of all others, and with the subject in them, or
        none. The body has the principal. Raises `NotFound`, `CommitFailed` for another version than the expected one,
        an error for an invalid subject, and `AlreadyExists` if another principal has it."""
        subject = self.properties.get(SUBJECT)
        yield Needs(keys=[principal_key(self.name), *([] if subject is None else [subject_key(subject)])])
        before = existing_principal(index, self.name)
        check_version(before, self.expected, "Principal")
        _check_subject(index, subject, self.name)
        after = before.updated(attempt.now_ms, properties={**self.properties}, subject=subject)
        edits = dict(principal_edits(after))
        if before.subject is not None and before.subject != subject:
            edits[subject_key(before.subject)] = None
        return edits, shown(after)


class _ChangeCredentials(EntityChange):
    status = 200

    def __init__(
        self, session: Session, name: str, made: Callable[[PrincipalEntry], NewCredentials], rotate: bool
    ) -> None:
        super().__init__(session, {"name": name})
        self.kind = "rotate-credentials" if rotate else "reset-credentials"
        self.name, self.made, self.rotate = name, made, rotate

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the principal's entry with new credentials, which need not be rotated, and for a rotation with the
        newest secret besides. The body has the principal, without secrets. Raises `NotFound`, and `AlreadyExists` if
        another principal has the client id."""
        yield Needs(keys=[principal_key(self.name)])
        before = existing_principal(index, self.name)
        new = self.made(before)
        yield Needs(keys=[client_key(new.client_id)])
        owner = name_under(index, client_key(new.client_id))
        if owner is not None and owner != self.name:
            raise AlreadyExists(
                f"The credentials of {self.name} were not changed: another principal has the client id "
                f"{new.client_id}, choose another"
            )
        kept = before.secrets[:1] if self.rotate else ()
        after = before.with_secrets((new.secret, *kept), attempt.now_ms, client_id=new.client_id, must_rotate=False)
        edits = dict(principal_edits(after))
        if before.client_id != new.client_id:
            edits[client_key(before.client_id)] = None
        return edits, {"principal": shown(after)}


class _Drop(EntityChange):
    kind = "drop-principal"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, {"name": name})
        self.name = name

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the removal of the principal with the memberships in principal roles; the version is kept, so that
        the next principal of the name has a higher one. The body is None. Raises `NotFound`, and an error for the
        root principal."""
        yield Needs(keys=[principal_key(self.name)])
        principal = existing_principal(index, self.name)
        if self.name == ROOT_PRINCIPAL:
            raise BadRequest(
                "The root principal cannot be dropped: an operator replaces the credentials by "
                "`arco bootstrap --reset-root`"
            )
        yield Needs(scans=[Scan(roles_of(principal.entity))])
        edits: dict[str, JsonObject | None] = dict.fromkeys(principal_edits(principal))
        edits |= yield from raised_floor(index, principal_key(self.name), principal.version)
        for role in names_under(index, roles_of(principal.entity)):
            edits[roles_of(principal.entity) + role] = None
            edits[members_of(role) + principal.entity] = None
        return edits, None


async def principal_of_client(session: Session, client_id: str) -> PrincipalEntry | None:
    """Returns the entry of the principal with a client id, by the realm's current HEAD, or None if there is none."""
    return await _found_under(session, client_key(client_id))


async def principal_of_id(session: Session, entity: str) -> PrincipalEntry | None:
    """Returns the entry of the principal with an entity id, by the realm's current HEAD, or None if there is none."""
    return await _found_under(session, principal_id_key(entity))


async def principal_of_name(session: Session, name: str) -> PrincipalEntry | None:
    """Returns the entry of the principal with a name, by the realm's current HEAD, or None if there is none."""
    return find_principal(await load_keys(session, [principal_key(name)]), name)


async def _found_under(session: Session, key: str) -> PrincipalEntry | None:
    """Returns the entry of the principal to which a key of the realm's registry, of a client id or an entity id, leads;
    None without one."""
    head = await session.head()
    return await carry_out(session.state, head.index, principal_under(head.index, key))
