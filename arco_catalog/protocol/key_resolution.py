"""Resolves the header of a request to the marker that stands for its key, by the settings that HEAD records
(docs/design/idempotency.md#settings)."""

import logging
from collections.abc import Callable

from arco_catalog.iceberg.errors import BadRequest, CatalogChanged, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.idempotency import check_not_keyless
from arco_catalog.protocol.internal_commits import HeadChange, change_head
from arco_catalog.protocol.operation_request import IdempotencyKey
from arco_catalog.state.key_settings import KeyPolicy, KeySettings
from arco_catalog.state.marker import CLOSED, KEYLESS, Slot, WriteSet, bound_to
from arco_catalog.state.marker_log import MarkerLog
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.worker_threads import off_loop
from storage_backends import StoreError

RECORD = "record-key-settings"
"""The kind of a registry commit that records what the first server of a catalog without a record uses."""
CHANGE = "key-settings"
"""The kind of a registry commit by which an operator changes how keys are read."""
CHANGED = "The way in which this catalog reads idempotency keys was changed just now: try again"

_LOG = logging.getLogger(__name__)


async def resolve_key(session: Session) -> None:
    """Sets the `key` of a request that has the header, before anything is planned: by the catalog's policy, or by a
    previous one under which the request began. Sets none if the request began under no previous policy and the present
    one is to read no keys. The cached HEAD will do: the commit loop compares it with the one that it reads. Unless the
    catalog is read-only, this may write: a record of the settings into HEAD, and slots that close markers. Raises
    `BadRequest` for a malformed key, `CommitStateUnknown` if the store fails, or if the request may have been carried
    out while the catalog read no keys, and `InternalError`."""
    request = session.request
    if request.key_text is None:
        return
    try:
        settings = await _settings(session)
        request.key_settings = settings
        request.key = await _find_previous_key(session, request.key_text, settings)
    except StoreError as error:
        raise CommitStateUnknown(
            "Whether this request was carried out before is unknown, because the settings or the record of its "
            f"Idempotency-Key could not be read or written: {error}"
        ) from error
    if request.key is None and settings.policy.enabled:
        request.key = IdempotencyKey.parse(request.key_text, settings.policy.dialect, settings.enabled_ms)


async def _settings(session: Session) -> KeySettings:
    """Returns the settings by which the catalog reads idempotency keys, from the cached HEAD if there is one, and logs
    if the server's variables set others. If HEAD records none, a registry commit records the server's; in a new or
    read-only catalog the server's are used without a record."""
    state, variables = session.state, session.request.key_policy or KeyPolicy()
    head = state.cached_head() or await state.head()
    settings = head.key_settings
    if settings is None and head.version is not None and session.settings.read_only_because is None:
        settings = await record_key_settings(session)
    _log_difference(session, settings, variables)
    return settings or KeySettings(variables)


async def _find_previous_key(session: Session, text: str, settings: KeySettings) -> IdempotencyKey | None:
    """Returns the key of this request by the previous policy under which the request began; None if it began under no
    previous policy. Markers of previous policies that are read before and have no slot are closed, so that a server
    which does not know of the change yet can't begin the request there. In a read-only catalog none is closed."""
    request, policies = session.request, settings.previous_policies(session.now_ms())
    if not policies:
        return None
    identity = await off_loop(request.body_bytes, request.identity)
    current = _marker_hash(session, text, settings.policy) if settings.policy.enabled else None
    for policy in policies:
        name = _marker_hash(session, text, policy)
        if name is None or name == current:
            continue
        if await _is_begun(session, MarkerLog(session.state, name, identity, settings=settings.number), settings):
            return IdempotencyKey.parse(text, policy.dialect)
    return None


def _marker_hash(session: Session, text: str, policy: KeyPolicy) -> str | None:
    """Returns the hash that names the request's marker if the header `text` is read by this policy; None if the text is
    no key by the policy."""
    try:
        return session.request.marker_hash(IdempotencyKey.parse(text, policy.dialect))
    except BadRequest:
        return None


async def _is_begun(session: Session, log: MarkerLog, settings: KeySettings) -> bool:
    """Whether the request began in this marker; False if the marker was closed, or is bound to another request. It
    first closes a marker without a slot by a slot of this request, unless the catalog is read-only. Raises
    `CommitStateUnknown` if the catalog reads keys and another sending closed the marker while it did not."""
    writable, identity, own = session.settings.read_only_because is None, log.identity, session.request.attempts
    keyless: JsonObject = {} if settings.policy.enabled else {KEYLESS: True}
    closed = Slot(session.runtime.ulid(), WriteSet(), identity.to_json(), {CLOSED: settings.number, **keyless})
    own.add(closed.attempt)
    while not (writable and await log.put(closed)):
        slots = await log.read_on()
        if slots:
            return slots[0].closed_by is None and bound_to(slots[0], identity)
        if settings.policy.enabled:
            check_not_keyless(log, own)
        if not writable:
            break
    return False


async def record_key_settings(session: Session) -> KeySettings:
    """Reads HEAD, and returns the settings of idempotency keys that it records. If there is no record, a registry
    commit first records the server's policy, or the default one if the server has none. Raises `StoreError`, and
    `CommitStateUnknown` if it is not known whether that commit was made."""
    policy = session.request.key_policy or KeyPolicy()

    def record(head: RegistryState) -> KeySettings:
        return head.key_settings or KeySettings.first(policy, session.now_ms(), is_new=_is_new(head))

    return await _commit_key_settings(session, RECORD, record)


async def set_key_policy(session: Session, policy: KeyPolicy) -> KeySettings:
    """Makes all servers of the catalog read idempotency keys by this policy, by a registry commit unless HEAD has it
    already, and returns the settings. Raises as `record_key_settings` does."""

    def change(head: RegistryState) -> KeySettings:
        settings, now_ms = head.key_settings, session.now_ms()
        if settings is None:
            return KeySettings.first(policy, now_ms, is_new=_is_new(head))
        return settings if settings.policy == policy else settings.changed(policy, now_ms)

    return await _commit_key_settings(session, CHANGE, change)


async def _commit_key_settings(
    session: Session, kind: str, change: Callable[[RegistryState], KeySettings]
) -> KeySettings:
    """Makes HEAD record the settings that `change` computes from it, by a registry commit if it does not record them
    yet, and returns them. Raises `StoreError`, and `CommitStateUnknown`."""

    async def change_settings(head: RegistryState) -> HeadChange | None:
        settings = change(head)
        if settings == head.key_settings:
            return None
        return HeadChange(head.with_key_settings(settings), {"idempotency": settings.policy.to_json()})

    recorded = (await change_head(session, kind, change_settings)).key_settings
    assert recorded is not None
    return recorded


def _log_difference(session: Session, settings: KeySettings | None, variables: KeyPolicy) -> None:
    """Logs, once for each policy of a catalog, that the server's variables set another policy, which has no effect.
    Logs nothing if the policies are equal, or HEAD has no settings of keys."""
    caches, warning = session.catalog.caches, key_warning(session.settings.warehouse, settings, variables)
    if settings is not None and warning is not None and caches.logged_policy != settings.policy:
        caches.logged_policy = settings.policy
        _LOG.warning("%s", warning)


def key_warning(warehouse: str, settings: KeySettings | None, variables: KeyPolicy) -> str | None:
    """Returns a warning for the operator that the variables of a server set another policy than the catalog's settings,
    which count; None if the policies are equal, or the catalog has no settings. `warehouse` is the catalog's name."""
    if settings is None or settings.policy == variables:
        return None
    return (
        f"catalog {warehouse!r} reads idempotency keys by its settings, {settings.policy}: this server's "
        f"variables, which set {variables}, have no effect. `arco settings` changes the catalog's"
    )


def _is_new(head: RegistryState) -> bool:
    """Whether the registry has no HEAD yet, as in a new catalog."""
    return head.version is None


def check_key_settings(session: Session, head: RegistryState) -> None:
    """Returns if the key of a request was resolved by the settings that a HEAD records, or HEAD records none, or the
    request has no `Idempotency-Key`. A key that the settings ignore counts as resolved by them. Raises `CatalogChanged`
    otherwise, so that the request is handled again."""
    resolved = session.request.key_settings
    if resolved is not None and head.key_settings not in (None, resolved):
        raise CatalogChanged(CHANGED)


async def require_record(session: Session, head: RegistryState) -> None:
    """Makes sure, before a refusal, or the answer that nothing changes, is kept under a key, that HEAD records how the
    key was resolved: as long as the catalog is new, another server may read the same key in another way. Does nothing
    if the request has no `Idempotency-Key`, or `head` shows that the catalog has a HEAD. Raises `CatalogChanged` if
    HEAD records other settings, and as `record_key_settings` does."""
    if session.request.key_settings is not None and _is_new(head):
        await record_key_settings(session)
        check_key_settings(session, await session.state.head())
