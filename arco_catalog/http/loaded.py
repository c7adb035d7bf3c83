"""Makes responses to loads: the state of a table or view with the labels of its governance."""

from collections.abc import Mapping
from dataclasses import replace

from arco_catalog.http.access_delegation import NOT_DELEGATED, DelegatedAccess
from arco_catalog.http.compression import answer_limit, compressed
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, around_metadata, table_response
from arco_catalog.planning.answers import TableState
from arco_catalog.state.gzip_stream import DeflatedPart, gzip_stream


def load_response(
    context: RequestContext,
    state: TableState,
    headers: Mapping[str, str],
    delegated: DelegatedAccess = NOT_DELEGATED,
    part: DeflatedPart | None = None,
) -> Response:
    """Returns the response to a load of a table or view, with the configuration and credentials of the access in
    `delegated`. It is compressed if `part`, the compressed metadata of `state`, is given and the host can carry the
    result; the caller gives it only for a client that accepts gzip. It has no labels if they would make it larger than
    the host can carry, because governance must not prevent the load. If it is too large even so, the layer `Encoding`
    raises `AnswerTooLarge`."""
    limit = answer_limit(context.options, context.headers) if part is not None or state.governance else None
    if part is not None:
        response = _compressed_response(state, headers, delegated, part)
        if limit is None or limit.carries(response.body, text=False):
            return response
    response = table_response(state, headers, config=True, delegated=delegated)
    if limit is None or not state.governance or limit.fits(response.body):
        return response
    return table_response(replace(state, governance={}), headers, config=True, delegated=delegated)


def _compressed_response(
    state: TableState, headers: Mapping[str, str], delegated: DelegatedAccess, part: DeflatedPart
) -> Response:
    """Returns the response to a load of a table, made of the metadata in compressed form."""
    start, end = around_metadata(state, config=True, delegated=delegated)
    return compressed(Response(200, headers={**headers, "Vary": "Accept-Encoding"}), gzip_stream(start, part, end))
