"""Hands the purge of a table of ours over to a delegation service, and waits for its end (docs/design/tasks.md#rule-8).

That a service may be deleting is in the task's checkpoint before it is asked to, under `delegated`, until a terminal
status was read, or its credentials have expired.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.delegation import may_be_handed_over
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.fields import mapping, optional_text
from arco_catalog.state.locations import Location
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.purge_progress import Progress
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.tombstone import Tombstone
from arco_catalog.tasks.execution import Execution, NoProgress, NotYet, TaskFailed
from arco_catalog.upkeep.purge.delegation_service import DelegationClient, Handed
from storage_backends import StoreUnavailable

if TYPE_CHECKING:  # whoever hands nothing over pays for none of it
    from arco_catalog.vending.service import Vending

DELEGATED = "delegated"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0
SUBMISSIONS = 5
"""How often one attempt submits a task: again when the service has lost its credentials."""
MARGIN_MS = 60_000
"""How long after credentials have expired they are taken to be good, by the store's clock."""

_OPEN_TO_ALL = ("file", "memory")
_ENDED = ("COMPLETED_SUCCESS", "FAILED_TERMINAL")


class DelegateFailed(NoProgress, StoreUnavailable):
    """The service did not delete the files; the next attempt hands them over again. That it was asked is in the
    checkpoint, and is no progress."""


@dataclass(frozen=True, slots=True)
class Vended:
    """Credentials for the table's location, and when they expire; None for files that need none."""

    config: Mapping[str, str]
    expires_ms: int | None


@dataclass(frozen=True, slots=True)
class Delegate:
    """A delegation service that purges for this catalog. `vending` makes credentials for a table's location."""

    client: DelegationClient
    vending: "Callable[[], Vending]"

    async def purge(self, execution: Execution, tombstone: Tombstone, pointer: Pointer) -> None:
        """Has the service delete what it can, if this purge may be handed over; what is left then is for the caller to
        delete. Returns when the service is not at it any more. Raises `DelegateFailed`, `TaskFailed`, `LeaseLost`, and
        `StoreError`."""
        session = execution.session()
        if not _said(execution):
            if Progress.parse(execution.checkpoint).deleting:  # by a worker, which began before this was set
                return
            index = (await session.state.head()).index
            if not await carry_out(session.state, index, may_be_handed_over(index, tombstone)):
                return
        metadata = await _metadata(execution, pointer)
        if metadata is None:  # nothing was handed over, and the service could find nothing
            return
        payload = _payload(execution, tombstone, pointer, metadata)
        for _ in range(SUBMISSIONS):
            ended = await self._ended(execution, await self._submitted(execution, tombstone, payload))
            if ended.status == "COMPLETED_SUCCESS":
                await _forget(execution, ended.result)
                return
            await execution.save({**_begun(execution), DELEGATED: {**_said(execution), "ended": True}})
            if ended.code != "CREDENTIALS_NEEDED":
                raise DelegateFailed(
                    f"task {ended.task} of the delegation service {self.client.url} has failed: {ended.code} "
                    f"{ended.summary}".rstrip()
                )
        raise DelegateFailed("the delegation service lost its credentials again and again")

    async def _submitted(self, execution: Execution, tombstone: Tombstone, payload: JsonObject) -> Handed:
        """Hands the task over, with fresh credentials; that is durable before it is sent."""
        vended = await self._vended(execution, tombstone)
        parameters: JsonObject = {**mapping(payload, "operation_parameters"), "config": {**vended.config}}
        metadata: JsonObject = {"metadata": parameters["metadata"]}
        said: JsonObject = {"service": self.client.url, "expires_ms": _latest(_said(execution), vended), **metadata}
        await execution.save({**_begun(execution), DELEGATED: said})
        return await self.client.submit(
            {**payload, "operation_parameters": parameters}, idempotency_key(execution.runtime)
        )

    async def _ended(self, execution: Execution, handed: Handed) -> Handed:
        """The task when it has ended. A service that does not answer is asked again, until the credentials that it has
        have expired. Raises `DelegateFailed` then."""
        pause_s = FIRST_PAUSE_S
        while handed.status not in _ENDED:
            execution.check()
            await execution.runtime.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            try:
                found = await self.client.status(handed.task)
            except StoreUnavailable as error:
                if not _may_go_on(_said(execution), execution.session().now_ms()):
                    raise DelegateFailed(f"nothing was heard of the delegation service: {error}") from error
                continue
            if found is None:
                raise DelegateFailed("the delegation service does not know the task any more")
            handed = found
        return handed

    async def _vended(self, execution: Execution, tombstone: Tombstone) -> Vended:
        """Credentials for the table's location alone, which expire. Raises `TaskFailed` where there are none."""
        # A function that works on tasks by itself does not pay for these at its cold start.
        from arco_catalog.operations.delegation import storage_of
        from arco_catalog.vending.scope import Scope
        from arco_catalog.vending.storage_config import AwsStorage, FileStorage

        session = execution.session()
        [location] = [Location.of_normal(each) for each in tombstone.locations]
        if location.scheme in _OPEN_TO_ALL:
            return Vended({}, None)
        config = storage_of(session) if execution.catalog.storage else FileStorage()
        lasting = isinstance(config, AwsStorage) and not config.assumes_role
        issued = (
            ()
            if lasting
            else await self.vending().credentials(
                config, Scope.of([location], write=True), tombstone.entity, session.request.principal
            )
        )
        if len(issued) != 1:
            raise TaskFailed(
                f"no credentials that expire can be made for {location.uri} alone, as the delegation service needs: "
                "the catalog's storage configuration says what can"
            )
        return Vended(issued[0].config, issued[0].expires_ms)


async def wait_for_delegate(execution: Execution) -> None:
    """Returns if no delegation service may be at the files of a task. Raises `NotYet` while one may, and `TaskFailed`
    if that can't be known without asking it."""
    said = _said(execution)
    if not said:
        return
    if said.get("ended") is True:
        await _forget(execution)
        return
    expires_ms = said.get("expires_ms")
    if not isinstance(expires_ms, int):
        service = optional_text(said, "service")
        raise TaskFailed(f"this purge was handed over to {service}: only purge.executor=delegated can know of its end")
    if _may_go_on(said, execution.session().now_ms()):
        raise NotYet(expires_ms + MARGIN_MS, "a delegation service may be at it until its credentials have expired")
    await _forget(execution)


def idempotency_key(runtime: Runtime) -> str:
    """A fresh UUIDv7 (RFC 9562)."""
    random = uuid.UUID(runtime.uuid()).int & ((1 << 80) - 1)
    return str(uuid.UUID(int=runtime.now_ms() << 80 | (7 << 76 | random & ~(0xF << 76))))


def _said(execution: Execution) -> JsonObject:
    """What the checkpoint says of a service; empty if none was asked."""
    return mapping(execution.checkpoint, DELEGATED)


def _begun(execution: Execution) -> JsonObject:
    """The checkpoint, which says that deletes may have been made."""
    return {**execution.checkpoint, "deleting": True}


async def _forget(execution: Execution, result: JsonObject | None = None) -> None:
    """Notes that no service is at it any more, and adds the counts of the one that succeeded."""
    rest: JsonObject = {name: value for name, value in _begun(execution).items() if name != DELEGATED}
    progress = Progress.parse(rest).without_inventory()  # the service has deleted what is in it
    progress = replace(progress, handed_over=True).with_result(result or {})
    await execution.save({**rest, **progress.to_json()})


def _may_go_on(said: JsonObject, now_ms: int) -> bool:
    expires_ms = said.get("expires_ms")
    return not isinstance(expires_ms, int) or now_ms < expires_ms + MARGIN_MS


def _latest(before: JsonObject, vended: Vended) -> int | None:
    """Until when some service may have credentials; None: nobody knows."""
    if not before or before.get("ended") is True:
        return vended.expires_ms
    earlier = before.get("expires_ms")
    if vended.expires_ms is None or not isinstance(earlier, int):
        return None
    return max(vended.expires_ms, earlier)


async def _metadata(execution: Execution, pointer: Pointer) -> JsonObject | None:
    """What the service is told of the table's metadata: as an earlier lease told it, or as its file says; None if that
    is gone. Told alike, it is the same task."""
    told = mapping(_said(execution), "metadata")
    if told:
        return told
    file, files = pointer.metadata.location, execution.session().files
    try:
        names = ("location", "table-uuid", "format-version")
        return await files.extract(file, lambda document: {name: document.get(name) for name in names})
    except NotFound:
        return None
    finally:
        files.forget(file)


def _payload(execution: Execution, tombstone: Tombstone, pointer: Pointer, metadata: JsonObject) -> JsonObject:
    """What the service is told, without credentials."""
    catalog = execution.catalog.settings.warehouse
    identity: JsonObject = {
        "table_entity_id": tombstone.entity,
        "catalog_name": catalog,
        "namespace_levels": [*tombstone.namespace],
        "table_name": tombstone.name,
    }
    return {
        "common_payload": {
            "operation_type": "SYNCHRONOUS_TABLE_PURGE",
            "realm_identifier": execution.catalog.realm,
            "polaris_correlation_id": tombstone.operation,
        },
        "operation_parameters": {
            "table_identity": identity,
            "metadata_location": pointer.metadata.location,
            "metadata": metadata,
            "properties": {},
        },
    }
