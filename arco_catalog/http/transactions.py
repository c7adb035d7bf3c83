"""The HTTP handler of transactions over several tables."""

from arco_catalog.http.names import required_identifier
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response
from arco_catalog.iceberg.commit import check_counts
from arco_catalog.iceberg.shapes import OBJECT, Fields, list_of
from arco_catalog.operations.transaction import TableChange, check_size, commit_transaction


async def commit(context: RequestContext) -> Response:
    """Commits the changes of all tables in the body, or none of them. Raises the errors of
    `commit_transaction`, and an error for an invalid body, also for too many tables, requirements or updates."""
    separator = context.options.namespace_separator
    changes: list[TableChange] = []
    # Counted before the session is opened: opening it computes the rights that each update of each table needs.
    unchecked = context.fields.values.get("table-changes")
    check_size(context.sessions.catalog.settings, len(unchecked) if isinstance(unchecked, list) else 0)
    table_changes = context.fields.required("table-changes", list_of(OBJECT))
    check_counts(*table_changes)
    session = context.sessions.open()
    for place, change in enumerate(table_changes):
        fields = Fields(change, f"request.table-changes[{place}]")
        namespace, name = required_identifier(fields, "identifier", separator)
        context.check_creation(change, name)
        changes.append((namespace, name, change))
    return answer_response(await commit_transaction(session, changes))
