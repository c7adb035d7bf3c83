"""HTTP handlers that list and load tables, and receive engines' reports on them. Those that change tables import many
more modules, so they are in table_commits.py and table_changes.py."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from arco_catalog.http.access_delegation import NOT_DELEGATED, DelegatedAccess, requested_ways
from arco_catalog.http.compression import WORTHWHILE_BYTES, is_compressed
from arco_catalog.http.etag import Snapshots, labels_digest, none_match, table_etag
from arco_catalog.http.loaded import load_response
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response, json_response
from arco_catalog.iceberg.shapes import check
from arco_catalog.operations.load import load_table, require_table
from arco_catalog.operations.planning_mode import planning_mode
from arco_catalog.operations.table_forms import deflated_metadata, visible_snapshots
from arco_catalog.planning.answers import TableState


async def list_(context: RequestContext) -> Response:
    """Returns a page of the tables of a namespace; with `deleted=true` a page of the tables that were dropped and have
    no finished purge, with details of each drop. Raises `NoSuchNamespace`, and `BadRequest` for an invalid query."""
    # Imported here: a cold start with a load saves the time.
    from arco_catalog.http.paging import paging
    from arco_catalog.operations.listing import list_relations

    if context.query.flag("deleted"):
        from arco_catalog.operations.dropped import list_dropped

        dropped, details = await list_dropped(context.sessions.open(), context.namespace, paging(context))
        page = {"identifiers": dropped.items, "next-page-token": dropped.next_page_token}
        return json_response({**page, "dropped": [*details]})
    listed = await list_relations(context.sessions.open(), context.namespace, "table", paging(context))
    return json_response({"identifiers": listed.items, "next-page-token": listed.next_page_token})


async def load(context: RequestContext) -> Response:
    """Returns the current state of a table, or 304 without a body to a client that has it. Raises `NoSuchTable`, and
    the errors of `load_table`.

    A 304, too, comes only after the pointer and the metadata file were found in the store, so that no client continues
    with a table whose metadata file is missing. A cached file, if this catalog made it, is not read again
    for `file_confirmed_ms`.
    """
    snapshots = cast(Snapshots, context.query.choice("snapshots", ("all", "refs"), "all"))
    session, name = context.sessions.open(), context.table
    state = await load_table(session, context.namespace, name)
    delegated = NOT_DELEGATED
    if delegates(context):
        from arco_catalog.http.delegation import access_to_table

        delegated = await access_to_table(context, session, name, state)
    mode = await planning_mode(session, state)
    if mode is not None:
        delegated = replace(delegated, planning=mode)
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
    """Returns 204 if the table exists. Raises `NoSuchTable` otherwise."""
    await require_table(context.sessions.open(), context.namespace, context.table)
    return NO_CONTENT


async def report_metrics(context: RequestContext) -> Response:
    """Checks an engine's report of a scan or commit, and stores it if the server keeps reports. Returns 204, also
    for a report that is never stored: on a table in the namespace `system`, one that is too long, or in a read-only
    catalog. Raises `BadRequest` for an invalid report, and the errors of `take_report`."""
    # Imported here: a cold start with another request saves the time.
    from arco_catalog.iceberg.metrics_report import REPORT
    from arco_catalog.operations.reports import take_report

    report = check(REPORT, context.body, "request")
    session, keep = context.sessions.open(), context.options.keep_reports
    await take_report(session, context.namespace, context.table, report, keep=keep)
    return NO_CONTENT


def tag_of(
    state: TableState, snapshots: Snapshots = "all", delegated: DelegatedAccess = NOT_DELEGATED
) -> Mapping[str, str]:
    """Returns the `ETag` header of a response with this table state, with all `snapshots` or only referenced ones, and
    with the access in `delegated`."""
    tag = table_etag(
        state.metadata_location,
        snapshots=snapshots,
        delegation=delegated.way or "",
        grants=delegated.grants,
        labels=labels_digest(state.governance),
    )
    return {"ETag": tag}


def delegates(context: RequestContext) -> bool:
    """Whether the client requests access to the files of tables, and the request has a realm whose deployment can
    delegate it."""
    realm = context.sessions.realm
    return realm is not None and realm.deployment.vending is not None and bool(requested_ways(context.headers))
