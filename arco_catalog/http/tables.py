"""Handlers that read tables. Those that change them import far more: see table_changes.py."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from arco_catalog.http.access_delegation import NOT_DELEGATED, Delegated, asked
from arco_catalog.http.compression import WORTHWHILE_BYTES, is_compressed
from arco_catalog.http.etag import Snapshots, labels_digest, none_match, table_etag
from arco_catalog.http.loaded import load_response
from arco_catalog.http.namespaces import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response, json_response
from arco_catalog.iceberg.shapes import check
from arco_catalog.operations.listing import list_relations
from arco_catalog.operations.load import load_table, require_table
from arco_catalog.operations.table_forms import deflated_metadata, visible_snapshots
from arco_catalog.planning.answers import TableState


async def list_(context: RequestContext) -> Response:
    """The tables of a namespace; with `deleted=true` those that were dropped and can be restored."""
    if context.query.flag("deleted"):
        from arco_catalog.operations.dropped import list_dropped

        dropped, told = await list_dropped(context.sessions.open(), context.namespace, paging(context))
        page = {"identifiers": dropped.items, "next-page-token": dropped.next_page_token}
        return json_response({**page, "dropped": [*told]})
    listed = await list_relations(context.sessions.open(), context.namespace, "table", paging(context))
    return json_response({"identifiers": listed.items, "next-page-token": listed.next_page_token})


async def load(context: RequestContext) -> Response:
    """The table's current state, or 304 for a client that holds it.

    The answer is 304 only now that pointer and metadata file were seen in the store: a client must not go on with a
    table whose metadata is gone.
    """
    snapshots = cast(Snapshots, context.query.choice("snapshots", ("all", "refs"), "all"))
    session, name = context.sessions.open(), context.table
    state = await load_table(session, context.namespace, name)
    delegated = NOT_DELEGATED
    if delegates(context):
        from arco_catalog.http.delegation import of_table

        delegated = await of_table(context, session, name, state)
    headers = {**tag_of(state, snapshots, delegated), **delegated.headers}
    if not none_match(context.headers.get("if-none-match"), headers["ETag"]):
        return Response(304, headers=headers)
    visible = await visible_snapshots(session, state) if snapshots == "refs" else None
    sent = state if visible is None else replace(state, metadata=visible)
    part = None
    if len(sent.metadata) > WORTHWHILE_BYTES and is_compressed(context.options, context.headers, len(sent.metadata)):
        part = await deflated_metadata(session, state, visible)
    return load_response(context, sent, headers, delegated, part)


async def exists(context: RequestContext) -> Response:
    """Whether it exists."""
    await require_table(context.sessions.open(), context.namespace, context.table)
    return NO_CONTENT


async def report_metrics(context: RequestContext) -> Response:
    """Takes an engine's report of a scan or commit."""
    from arco_catalog.iceberg.metrics_report import REPORT  # with the operation: a cold start does not pay for them
    from arco_catalog.operations.reports import take_report

    report = check(REPORT, context.body, "request")
    session, keep = context.sessions.open(), context.options.keep_reports
    await take_report(session, context.namespace, context.table, report, keep=keep)
    return NO_CONTENT


def tag_of(state: TableState, snapshots: Snapshots = "all", delegated: Delegated = NOT_DELEGATED) -> Mapping[str, str]:
    """The header that loading the table has."""
    tag = table_etag(
        state.metadata_location,
        snapshots=snapshots,
        delegation=delegated.way or "",
        grants=delegated.grants,
        labels=labels_digest(state.governance),
    )
    return {"ETag": tag}


def delegates(context: RequestContext) -> bool:
    """Whether the client requests access to the files of tables, of a catalog that may give it."""
    realm = context.sessions.realm
    return realm is not None and realm.deployment.vending is not None and bool(asked(context.headers))
