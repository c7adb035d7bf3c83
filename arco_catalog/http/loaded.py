"""Answers to loads: the state of a table or view, with the labels that tell of its governance."""

from collections.abc import Mapping
from dataclasses import replace

from arco_catalog.http.access_delegation import NOT_DELEGATED, Delegated
from arco_catalog.http.compression import answer_limit
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, table_response
from arco_catalog.planning.answers import TableState


def load_response(
    context: RequestContext, state: TableState, headers: Mapping[str, str], delegated: Delegated = NOT_DELEGATED
) -> Response:
    """The answer to a load. Labels are left out of one that the host could not carry with them: governance must not
    make a table unreadable that was readable without."""
    response = table_response(state, headers, config=True, delegated=delegated)
    limit = answer_limit(context.options, context.headers) if state.governance else None
    if limit is None or limit.fits(response.body):
        return response
    return table_response(replace(state, governance={}), headers, config=True, delegated=delegated)
