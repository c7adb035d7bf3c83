"""Hands the purge of a table over to a delegation service, and waits until it ends (docs/design/tasks.md#rule-10).

The task's checkpoint has a field `delegated` from before the first request to the service until the service has
succeeded, or its credentials have expired. After a failure of the service's task the field stays, with `ended`. While
it is there without `ended`, the service may be deleting files.
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
from arco_catalog.upkeep.purge.delegation_service import DelegatedTask, DelegationClient
from storage_backends import StoreUnavailable

if TYPE_CHECKING:  # a process that hands nothing over must not import credentials and signatures
    from arco_catalog.vending.service import Vending

DELEGATED = "delegated"
FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 15.0
MAX_SUBMISSIONS = 5
"""Submissions of a task by one attempt: one more each time the service has lost the credentials."""
MARGIN_MS = 60_000
"""How long after their expiry credentials are still assumed to work, since clocks differ."""

_OPEN_TO_ALL = ("file", "memory")
_ENDED = ("COMPLETED_SUCCESS", "FAILED_TERMINAL")


class DelegateFailed(NoProgress, StoreUnavailable):
    """The delegation service failed to purge the table, of which it may have deleted files. The next attempt, if one is
    left, submits the purge to it once more. The attempt counts as failed, although the checkpoint has a new
    submission."""


@dataclass(frozen=True, slots=True)
class TableCredentials:
    """Credentials for the location of a table, and the time at which they expire in milliseconds since 1970; None for
    files that open without credentials."""

    config: Mapping[str, str]
    expires_ms: int | None


@dataclass(frozen=True, slots=True)
class Delegate:
    """Purges tables by a delegation service. `vending` makes the credentials that the service gets for a location."""

    client: DelegationClient
    vending: "Callable[[], Vending]"

    async def purge(self, execution: Execution, tombstone: Tombstone, pointer: Pointer) -> None:
        """Submits the purge of a table to the service, with each submission noted in the checkpoint, and returns when
        the service has succeeded. Submits it once more if the service has lost the credentials, at most
        `MAX_SUBMISSIONS` times in all. Without a submission in the checkpoint, does nothing if the purge may not be
        handed over, if files may have been deleted, or if the metadata file is missing; with one, it submits in all
        these cases. The caller then deletes the files that are left. Raises `DelegateFailed` if the service fails,
        `TaskFailed`, `LeaseLost`, and `StoreError`."""
        session = execution.session()
        if not _delegation(execution):
            if Progress.parse(execution.checkpoint).deleting:  # a worker began before delegation was configured
                return
            index = (await session.state.head()).index
            if not await carry_out(session.state, index, may_be_handed_over(index, tombstone)):
                return
        metadata = await _table_fields(execution, pointer)
        if metadata is None:  # without the metadata file the service would find no files either
            return
        payload = _payload(execution, tombstone, pointer, metadata)
        for _ in range(MAX_SUBMISSIONS):
            ended = await self._wait_until_ended(execution, await self._submit(execution, tombstone, payload))
            if ended.status == "COMPLETED_SUCCESS":
                await _end_delegation(execution, ended.result)
                return
            await execution.save({**_as_deleting(execution), DELEGATED: {**_delegation(execution), "ended": True}})
            if ended.code != "CREDENTIALS_NEEDED":
                raise DelegateFailed(
                    f"task {ended.task} of the delegation service {self.client.url} has failed, and the next attempt, "
                    f"if one is left, submits the purge to it once more: {ended.code} {ended.summary}".rstrip()
                )
        raise DelegateFailed(
            f"the delegation service {self.client.url} lost the credentials of this purge {MAX_SUBMISSIONS} times: the "
            "next attempt, if one is left, submits the purge to it once more"
        )

    async def _submit(self, execution: Execution, tombstone: Tombstone, payload: JsonObject) -> DelegatedTask:
        """Submits a purge with fresh credentials and a new idempotency key, after the checkpoint has noted the
        service, the latest expiry of credentials that it has, and that files may be deleted. Returns the service's
        task."""
        credentials = await self._issue_credentials(execution, tombstone)
        parameters: JsonObject = {**mapping(payload, "operation_parameters"), "config": {**credentials.config}}
        expires_ms = _latest_expiry(_delegation(execution), credentials)
        delegation: JsonObject = {"service": self.client.url, "expires_ms": expires_ms}
        delegation["metadata"] = parameters["metadata"]
        await execution.save({**_as_deleting(execution), DELEGATED: delegation})
        return await self.client.submit(
            {**payload, "operation_parameters": parameters}, idempotency_key(execution.runtime)
        )

    async def _wait_until_ended(self, execution: Execution, submitted: DelegatedTask) -> DelegatedTask:
        """Polls the service, less and less often, until the submitted task has succeeded or failed, and returns the
        last state. Raises `DelegateFailed` if the service no longer has the task, or does not answer until the
        credentials that it received have expired, `LeaseLost`, and `StoreError` if the service refuses the call."""
        task, pause_s = submitted, FIRST_PAUSE_S
        while task.status not in _ENDED:
            execution.check()
            await execution.runtime.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)
            try:
                found = await self.client.status(task.task)
            except StoreUnavailable as error:
                if not _may_be_deleting(_delegation(execution), execution.session().now_ms()):
                    raise DelegateFailed(
                        f"the delegation service {self.client.url}, which was to delete the files of this purge, did "
                        "not answer before the credentials that this catalog had sent it expired, and the next "
                        f"attempt, if one is left, submits the purge to it once more: {error}"
                    ) from error
                continue
            if found is None:
                raise DelegateFailed(
                    f"the delegation service {self.client.url} does not know its task {task.task} any more: the "
                    "next attempt, if one is left, submits the purge to it once more"
                )
            task = found
        return task

    async def _issue_credentials(self, execution: Execution, tombstone: Tombstone) -> TableCredentials:
        """Issues credentials that open the location of the dropped table alone, and that expire. Raises `TaskFailed` if
        the catalog's storage configuration allows no such credentials. Local files need none."""
        # Imported here for the cold start of a function that purges by itself.
        from arco_catalog.operations.delegation import storage_of
        from arco_catalog.vending.scope import Scope
        from arco_catalog.vending.storage_config import AwsStorage, FileStorage

        session = execution.session()
        [location] = [Location.of_normal(each) for each in tombstone.locations]
        if location.scheme in _OPEN_TO_ALL:
            return TableCredentials({}, None)
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
                f"this purge deletes no more files, since no credentials that expire can be made for {location.uri} "
                "alone, as the delegation service needs: the catalog's storage configuration must be allowed by the "
                "operator, and have a roleArn on S3, or hierarchical on Azure; and the worker must have an identity of "
                "the cloud, no fixed token of Google and no account key of Azure"
            )
        return TableCredentials(issued[0].config, issued[0].expires_ms)


async def wait_for_delegate(execution: Execution) -> None:
    """Returns when no delegation service can be deleting files of the purge any more, and then removes the record of
    the delegation and the inventory from the checkpoint; at once if the purge was not handed over. Raises `NotYet`
    until the credentials of the service have expired, and `TaskFailed` for credentials without an expiry, since only
    the service itself knows when it stops."""
    delegation = _delegation(execution)
    if not delegation:
        return
    if delegation.get("ended") is True:
        await _end_delegation(execution)
        return
    expires_ms = delegation.get("expires_ms")
    if not isinstance(expires_ms, int):
        service = optional_text(delegation, "service")
        raise TaskFailed(
            f"this purge was handed over to {service}, with access that does not expire: set "
            f"ARCO_PURGE_EXECUTOR=delegated, so that a worker can wait for the service, and run `arco tasks retry "
            f"{execution.task.id}`"
        )
    if _may_be_deleting(delegation, execution.session().now_ms()):
        raise NotYet(expires_ms + MARGIN_MS, "a delegation service may delete files until its credentials have expired")
    await _end_delegation(execution)


def idempotency_key(runtime: Runtime) -> str:
    """Returns a new idempotency key: a UUIDv7 (RFC 9562) of the time and of random bits."""
    random = uuid.UUID(runtime.uuid()).int & ((1 << 80) - 1)
    return str(uuid.UUID(int=runtime.now_ms() << 80 | (7 << 76 | random & ~(0xF << 76))))


def _delegation(execution: Execution) -> JsonObject:
    """Returns the record of the delegation in the task's checkpoint; empty if the purge is not handed over."""
    return mapping(execution.checkpoint, DELEGATED)


def _as_deleting(execution: Execution) -> JsonObject:
    """Returns the task's checkpoint with the mark that files may have been deleted, without saving it."""
    return {**execution.checkpoint, "deleting": True}


async def _end_delegation(execution: Execution, result: JsonObject | None = None) -> None:
    """Removes the record of the delegation and the inventory from the checkpoint and saves it, with marks that the
    purge was handed over and that files may be deleted, and with the counts in `result`, which a service that succeeded
    returned."""
    rest: JsonObject = {name: value for name, value in _as_deleting(execution).items() if name != DELEGATED}
    progress = Progress.parse(rest).without_inventory()  # the service has deleted files of the inventory
    progress = replace(progress, handed_over=True).with_result(result or {})
    await execution.save({**rest, **progress.to_json()})


def _may_be_deleting(delegation: JsonObject, now_ms: int) -> bool:
    """Whether the credentials that a service received may still work at `now_ms`; true for credentials that do not
    expire."""
    expires_ms = delegation.get("expires_ms")
    return not isinstance(expires_ms, int) or now_ms < expires_ms + MARGIN_MS


def _latest_expiry(delegation: JsonObject, credentials: TableCredentials) -> int | None:
    """Returns the latest expiry in milliseconds since 1970 of these credentials and of the ones that a previous
    submission of this delegation sent, unless that one is over; None if either do not expire."""
    if not delegation or delegation.get("ended") is True:
        return credentials.expires_ms
    earlier = delegation.get("expires_ms")
    if credentials.expires_ms is None or not isinstance(earlier, int):
        return None
    return max(credentials.expires_ms, earlier)


async def _table_fields(execution: Execution, pointer: Pointer) -> JsonObject | None:
    """Returns the location, uuid and format version in the table's metadata file, which are sent to the service; None
    if the file is missing. If a previous lease has submitted the purge, returns the fields that it sent, since the
    service takes an equal payload for the same task."""
    submitted = mapping(_delegation(execution), "metadata")
    if submitted:
        return submitted
    file, files = pointer.metadata.location, execution.session().files
    try:
        names = ("location", "table-uuid", "format-version")
        return await files.extract(file, lambda document: {name: document.get(name) for name in names})
    except NotFound:
        return None
    finally:
        files.forget(file)


def _payload(execution: Execution, tombstone: Tombstone, pointer: Pointer, metadata: JsonObject) -> JsonObject:
    """Returns the body of the submission of a purge to a delegation service (docs/delegation-service.openapi.yaml),
    without credentials. `metadata` are the fields of the table's metadata in it."""
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
