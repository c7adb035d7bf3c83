"""The HTTP handler that commits to tables."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response
from arco_catalog.http.tables import tag_of
from arco_catalog.iceberg.commit import check_counts
from arco_catalog.operations.commit import commit_table
from arco_catalog.planning.answers import Answer, TableState


async def commit(context: RequestContext) -> Response:
    """Commits the updates in the body to a table, if the body's requirements are met; with `assert-create` it creates
    the table. Raises `BadRequest` for an invalid path or body, and the errors of `commit_table`."""
    body = context.body or {}
    check_counts(body)  # before the session is opened, which computes the rights for each update
    context.check_identifier_is_of_path(context.table, "table")
    context.check_creation(body, context.table)
    answer = await commit_table(context.sessions.open(), context.namespace, context.table, body)
    return tagged_response(answer)


def tagged_response(answer: Answer) -> Response:
    """Returns the response for the answer about a changed table, with the ETag that a load of the table has if it gives
    no access to files and does not say who plans scans. Other answers, as that about a staged table, have no ETag."""
    return answer_response(answer, tag_of(answer) if isinstance(answer, TableState) else {})
