"""Queued work: each message of a batch is one errand, and what could not be done goes back to its queue.

Deployed as `lambda.work.handler` behind an SQS queue with `ReportBatchItemFailures`, with the variables of
`lambda.reconcile`. A message is `{"version": 1, "work": "reconcile"}`; with `"entity"`, one table or view is walked.
"""

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable, Mapping

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.iceberg.shapes import ANY, STRING, Fields
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.environment import opened
from arco_catalog.operations.invocation import Context, Invocation
from arco_catalog.operations.reconcile import reconcile
from arco_catalog.operations.walk import walk
from arco_catalog.state.runtime import SystemRuntime

_LOG = logging.getLogger(__name__)
_ENTITY = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class Undone(Exception):
    """A message whose work is not finished: it is to come again."""


Enough = Callable[[], bool]


def handler(event: Mapping[str, list[Mapping[str, str]]], context: Context) -> JsonObject:
    """Works through the records of a batch, in order. Returns those that failed; SQS forgets the others."""
    failed: list[JsonValue] = [{"itemIdentifier": item} for item in asyncio.run(_run(event["Records"], context))]
    return {"batchItemFailures": failed}


async def _run(records: list[Mapping[str, str]], context: Context) -> list[str]:
    """The ids of the messages that failed."""
    runtime, invocation = SystemRuntime(), Invocation(context)
    failed: list[str] = []
    async with opened(os.environ, runtime) as catalog:
        call = invocation.call("QUEUE", "work", runtime)
        for record in records:
            try:
                if invocation.enough():
                    raise Undone("there is no time left for it")
                await _work(record["body"], catalog.session(call), invocation.enough)
            except Exception as error:  # whatever it is, the other messages are not to blame
                failed.append(record["messageId"])
                _LOG.error("message %s failed: %s", record["messageId"], error, exc_info=error)
    return failed


async def _work(body: str, session: Session, enough: Enough) -> None:
    """Does what one message asks for. Raises `BadRequest` for one that asks for nothing that there is, and `Undone`."""
    document = loads(body.encode())
    if not isinstance(document, dict):
        raise BadRequest("a message is a JSON object")
    message = Fields(document, "message")
    version, work = message.required("version", ANY), message.required("work", STRING)
    if version != 1 or work not in _WORK:
        raise BadRequest(f"no such work: {work[:64]!r} of this version")
    await _WORK[work](message, session, enough)


async def _reconcile(message: Fields, session: Session, enough: Enough) -> None:
    entity = message.optional("entity", STRING)
    if entity is None:
        tally = await reconcile(session, enough=enough)
    elif _ENTITY.fullmatch(entity):
        tally = (await walk(session, entity, None)).tally
    else:
        raise BadRequest(f"no entity has the id {entity[:64]!r}")
    if tally.stopped or tally.incomplete:
        raise Undone(f"{tally.incomplete} walks are not complete, stopped: {tally.stopped}, {tally.unreadable}")


_WORK: Mapping[str, Callable[[Fields, Session, Enough], Awaitable[None]]] = {"reconcile": _reconcile}
