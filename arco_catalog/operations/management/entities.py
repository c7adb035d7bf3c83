"""The common parts of the changes of principals, roles, grants and catalogs."""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from arco_catalog.iceberg.errors import BadRequest, CommitFailed, Forbidden, InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out, load
from arco_catalog.protocol.registry_mutation import RegistryMutation, RegistryReadSet
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.paths import REALM_FOLDER
from arco_catalog.state.realm import REALM_STATE, is_dropped
from arco_catalog.state.roles import DescribedEntry
from arco_catalog.state.stored_fields import keep_stored_fields

T = TypeVar("T")

MAX_NAME = 256
"""Maximum number of characters of the name of a principal, role or catalog."""
MAX_PROPERTIES_BYTES = 64 << 10
"""Maximum number of bytes of the names and values of one entity's properties."""
RESERVED_PROPERTIES = "polaris."
CATALOG_CONFIG = f"{RESERVED_PROPERTIES}config."
"""Prefix of the properties by which Polaris configures a catalog. A catalog may have them, and they have no effect."""
_RESERVED = re.compile(r"\s*system\$", re.IGNORECASE)


class EntityChange(RegistryMutation):
    """The base of changes of principals, roles, grants and catalogs: a change of a registry by one commit, which is
    answered with a document or with an empty body."""

    status = 204
    revives_realm = False
    """Whether the change is allowed in a realm that was dropped."""

    def __init__(self, session: Session, detail: JsonObject) -> None:
        super().__init__(session)
        self.detail = detail

    @abstractmethod
    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Computes the index changes of this change of a principal, role, grant or catalog, and the body of the answer,
        None for an empty one. Fields of a stored entry that the changes do not name stay. Raises `Refusal`."""

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the change by `edits`, in which entries keep the fields that only the stored ones have, and the
        response with `status`. Raises `Forbidden` first for a change of a dropped realm, unless it revives the realm,
        and then as `edits` does."""
        index = read_set.head.index
        if self.session.state.paths.folder == REALM_FOLDER and not self.revives_realm:
            yield Needs(keys=[REALM_STATE])
            require_realm(index)
        edits, body = yield from self.edits(index, attempt)
        kept = yield from keep_stored_fields(index, edits)
        return Change(edits=kept, answer=Document(self.status, body), detail=self.detail)


def require_realm(index: Index) -> None:
    """Raises `Forbidden` if the realm was dropped. `REALM_STATE` must be loaded."""
    if is_dropped(index):
        raise Forbidden("Nothing was changed, because this realm was dropped: `arco bootstrap --reopen` makes it anew")


def check_entity_name(name: str, what: str) -> str:
    """Returns the name. Raises `BadRequest` unless it has 1 to `MAX_NAME` printable characters, does not begin with
    `system$` in any case of letters, has no spaces around it, and is not `.` or `..`. `what` is the kind of entity, for
    the message."""
    if not 1 <= len(name) <= MAX_NAME:
        raise BadRequest(
            f"Invalid value: the name of a {what}, new or in a path, must have 1 to {MAX_NAME} characters, not "
            f"{len(name)}"
        )
    if _RESERVED.match(name):
        raise BadRequest(
            f"Invalid value: the name of a {what}, new or in a path, must not begin with 'system$', in any case of "
            f"letters: {name!r}"
        )
    if not name.isprintable() or name != name.strip() or name in (".", ".."):
        raise BadRequest(
            f"Invalid value: the name of a {what}, new or in a path, must be printable, without spaces around it, and "
            f"not '.' or '..': {name!r}"
        )
    return name


def check_entity_properties(properties: Mapping[str, str], what: str) -> None:
    """Raises `BadRequest` for properties that are too large together, or that have a reserved prefix. `what` is the
    kind of entity; catalogs may have the properties of `CATALOG_CONFIG`."""
    for name in properties:
        if name.startswith(RESERVED_PROPERTIES) and not (what == "catalog" and name.startswith(CATALOG_CONFIG)):
            raise BadRequest(f"Property {name!r} of a {what} has the reserved prefix {RESERVED_PROPERTIES!r}")
    size = sum(len(name.encode()) + len(value.encode()) for name, value in properties.items())
    if size > MAX_PROPERTIES_BYTES:
        raise BadRequest(f"The properties of a {what} may take {MAX_PROPERTIES_BYTES:,} bytes at most, not {size:,}")


def grant_not_found(why: str) -> BadRequest:
    """Returns the error for the revocation of a role or privilege that is not held now, as Polaris words it."""
    return BadRequest(f"Operation failed: GRANT_NOT_FOUND: {why}")


def check_version(entry: DescribedEntry, expected: int | None, what: str) -> None:
    """Raises `CommitFailed` if the entity is not at the `expected` version. None allows any version."""
    if expected is not None and expected != entry.version:
        raise CommitFailed(
            f"{what} {entry.name} has changed: it is at version {entry.version}, not {expected}. Read it and try again"
        )


def described(entry: DescribedEntry) -> JsonObject:
    """Returns the fields that answers show of every principal, role and catalog: name, properties, version, and the
    times of the creation and the last change."""
    return {
        "name": entry.name,
        "properties": entry.properties,
        "createTimestamp": entry.created_ms,
        "lastUpdateTimestamp": entry.updated_ms,
        "entityVersion": entry.version,
    }


async def entries(session: Session, prefix: str) -> Sequence[JsonObject]:
    """Returns all entries under a prefix of the current HEAD's index, in order of their keys. Raises the errors of
    `Session.head`."""
    head = await session.head()
    await load(session.state, head.index, Needs(scans=[Scan(prefix)]))
    return [entry for _, entry in head.index.scan(prefix)]


async def load_keys(session: Session, keys: Iterable[str]) -> Index:
    """Returns the index of the current HEAD, with these keys loaded. Raises the errors of `Session.head`."""
    head = await session.head()
    await load(session.state, head.index, Needs(keys=[*keys]))
    return head.index


async def found(session: Session, steps: Callable[[Index], Steps[T]]) -> T:
    """Carries out a computation on the index of the current HEAD, reads the entries that it needs, and returns its
    result. All that it reads is of one instant. Raises the errors of `Session.head` and of the computation."""
    head = await session.head()
    return await carry_out(session.state, head.index, steps(head.index))


def body_of(answer: Answer) -> JsonObject:
    """Returns the document of a change's answer. Raises `InternalError` if it has none."""
    if not isinstance(answer, Document) or answer.body is None:
        raise InternalError("The answer to a change of a catalog, principal, role or grant has no document")
    return answer.body


def listing(name: str, items: Iterable[JsonObject]) -> JsonObject:
    """Returns an answer that lists entities in the field `name`."""
    listed: list[JsonValue] = [*items]
    return {name: listed}
