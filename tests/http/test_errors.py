"""Every failure has a response in Iceberg's form, with a type that clients know."""

from collections.abc import Iterator

import pytest

from arco_catalog.http.app import App
from arco_catalog.http.errors import TABLE, error_response
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response
from arco_catalog.http.route import Effect, Route
from arco_catalog.http.routes import ROUTES
from arco_catalog.iceberg import errors as e
from arco_catalog.iceberg.json import JsonValue, dumps, loads
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.memory import OutOfMemory
from storage_backends import InvalidKey, StoreDenied, StoreError, StoreUnavailable
from tests.http.templates import path_of
from tests.support.http_service import HttpService
from tests.support.scripted_store import Rule, ScriptedStore, anything
from tools.support.asgi_client import Client
from tools.support.request_bodies import schema, set_property


def descendants(root: type[e.CatalogError]) -> Iterator[type[e.CatalogError]]:
    for child in root.__subclasses__():
        if child.__module__ == e.__name__:
            yield child
            yield from descendants(child)


def error_answer(
    error: Exception, *, commits: bool = False, dialect: Dialect = Dialect.ICEBERG
) -> tuple[int, str, str | None]:
    """Status, type and Retry-After of the answer to a failure."""
    response = error_response(error, commits=commits, dialect=dialect)
    document = loads(response.body)
    assert isinstance(document, dict)
    assert isinstance(document["error"], dict)
    return response.status, str(document["error"]["type"]), response.headers.get("Retry-After")


def test_every_error_is_in_the_table() -> None:
    assert set(TABLE) == set(descendants(e.CatalogError)) - {e.Refusal}


@pytest.mark.parametrize(
    ("kind", "status", "type_name"),
    [
        (e.BadRequest, 400, "BadRequestException"),
        (e.IllegalArgument, 400, "IllegalArgumentException"),
        (e.NotAuthorized, 401, "NotAuthorizedException"),
        (e.Forbidden, 403, "NotAuthorizedException"),
        (e.NoSuchNamespace, 404, "NoSuchNamespaceException"),
        (e.NoSuchTable, 404, "NoSuchTableException"),
        (e.NoSuchView, 404, "NoSuchViewException"),
        (e.NoSuchWarehouse, 404, "NoSuchWarehouseException"),
        (e.NotFound, 404, "NotFoundException"),
        (e.Unsupported, 406, "UnsupportedOperationException"),
        (e.AlreadyExists, 409, "AlreadyExistsException"),
        (e.NamespaceNotEmpty, 409, "NamespaceNotEmptyException"),
        (e.CommitFailed, 409, "CommitFailedException"),
        (e.Unprocessable, 422, "UnprocessableEntityException"),
    ],
)
@pytest.mark.parametrize("commits", [True, False])
def test_the_specifications_types_are_used(
    kind: type[e.CatalogError], status: int, type_name: str, commits: bool
) -> None:
    assert error_answer(kind("why"), commits=commits) == (status, type_name, None)


def test_an_error_without_an_entry_in_the_table_has_the_response_of_its_parent() -> None:
    class Particular(e.AlreadyExists):
        pass

    assert error_answer(Particular("why")) == (409, "AlreadyExistsException", None)


@pytest.mark.parametrize(
    ("error", "commits", "dialect", "expected"),
    [
        (e.KeyReused("k"), True, Dialect.ICEBERG, (409, "CommitFailedException", None)),
        (e.KeyReused("k"), False, Dialect.ICEBERG, (422, "UnprocessableEntityException", None)),
        (e.KeyReused("k"), True, Dialect.POLARIS, (422, "idempotency_key_conflict", None)),
        (e.KeyReused("k"), False, Dialect.POLARIS, (422, "idempotency_key_conflict", None)),
        (e.TooManyRequests("k"), False, Dialect.ICEBERG, (429, "SlowDownException", "1")),
        (e.TooManyRequests("k", 7), False, Dialect.POLARIS, (429, "SlowDownException", "7")),
        (e.KeyInProgress("k"), True, Dialect.ICEBERG, (503, "SlowDownException", "1")),
        (e.KeyInProgress("k", 3), False, Dialect.ICEBERG, (503, "SlowDownException", "3")),
        (e.KeyInProgress("k"), True, Dialect.POLARIS, (409, "request_in_progress", "1")),
        (e.Unavailable("s"), True, Dialect.ICEBERG, (503, "ServiceUnavailableException", "1")),
        (e.Unavailable("s"), False, Dialect.POLARIS, (503, "ServiceUnavailableException", "1")),
        (StoreUnavailable("s"), False, Dialect.ICEBERG, (503, "ServiceUnavailableException", "1")),
        (StoreError("s"), False, Dialect.ICEBERG, (503, "ServiceUnavailableException", "1")),
        (StoreDenied("s"), False, Dialect.ICEBERG, (403, "NotAuthorizedException", None)),
        (StoreDenied("s"), True, Dialect.ICEBERG, (500, "CommitStateUnknownException", None)),
        (InvalidKey("s"), False, Dialect.ICEBERG, (400, "BadRequestException", None)),
        (StoreUnavailable("s"), True, Dialect.ICEBERG, (500, "CommitStateUnknownException", None)),
        (e.CommitStateUnknown("c"), True, Dialect.ICEBERG, (500, "CommitStateUnknownException", None)),
        (e.CommitStateUnknown("c"), False, Dialect.POLARIS, (500, "CommitStateUnknownException", None)),
        (e.InternalError("b"), False, Dialect.ICEBERG, (500, "InternalServerError", None)),
        (e.InternalError("b"), True, Dialect.ICEBERG, (500, "CommitStateUnknownException", None)),
        (RuntimeError("r"), False, Dialect.ICEBERG, (500, "InternalServerError", None)),
        (RuntimeError("r"), True, Dialect.ICEBERG, (500, "CommitStateUnknownException", None)),
    ],
)
def test_what_is_no_verdict_depends_on_route_and_dialect(
    error: Exception, commits: bool, dialect: Dialect, expected: tuple[int, str, str | None]
) -> None:
    assert error_answer(error, commits=commits, dialect=dialect) == expected


@pytest.mark.parametrize("error", [StoreUnavailable("no answer"), StoreDenied("no right"), OutOfMemory("none left")])
def test_a_failure_of_the_store_on_a_commit_route_is_a_warning_without_a_traceback(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    error_response(error, commits=True, dialect=Dialect.ICEBERG)

    [record] = caplog.records
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert record.getMessage().endswith(str(error))


def test_a_message_is_cut_where_it_quotes_too_much() -> None:
    body = error_response(e.BadRequest("x" * 1_000_000), commits=False, dialect=Dialect.ICEBERG).body

    assert len(body) < 10_000
    assert b'xxx...","type":"BadRequestException"' in body


async def test_an_unknown_route_has_an_error_response(client: Client) -> None:
    answer = await client.get("/v2/anything")

    assert (answer.status, answer.error_type) == (404, "NotFoundException")
    assert answer.message == "No endpoint at /v2/anything: /v1/config lists the endpoints of the catalog API"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/config", "GET, HEAD"),
        ("DELETE", "/v1/wh/namespaces", "GET, HEAD, POST"),
        ("PUT", "/v1/wh/namespaces/db", "DELETE, GET, HEAD"),
        ("GET", "/v1/wh/tables/rename", "POST"),
        ("PATCH", "/v1/wh/namespaces/db/tables/t", "DELETE, GET, HEAD, POST"),
        ("OPTIONS", "/v1/wh/namespaces", "GET, HEAD, POST"),
    ],
)
async def test_the_error_for_a_wrong_method_lists_the_right_ones(
    client: Client, method: str, path: str, allowed: str
) -> None:
    answer = await client.send(method, path)

    assert (answer.status, answer.error_type) == (405, "UnsupportedOperationException")
    assert answer.headers["Allow"] == allowed


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/wh/namespaces/db", 204),
        ("/v1/wh/namespaces/missing", 404),
        ("/v1/wh/namespaces/db/tables/missing", 404),
        ("/v1/wh/namespaces/db/tables/%ff", 400),
        ("/v1/missing/namespaces/db", 404),
        ("/nowhere", 404),
        ("/v1/config", 200),
        ("/v1/wh/namespaces/db/tables/t/credentials", 406),  # as GET: this catalog vends nothing
        ("/v1/wh/tables/rename", 405),
    ],
)
async def test_an_answer_to_head_has_no_body(client: Client, path: str, status: int) -> None:
    answer = await client.head(path)

    assert (answer.status, answer.body) == (status, b"")
    assert "Content-Type" not in answer.headers
    assert "content-length" not in answer.headers  # 0 would not be the length that GET has


async def test_errors_are_json_with_a_length(client: Client) -> None:
    answer = await client.get("/nowhere")

    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.body))


@pytest.mark.parametrize(
    ("effect", "type_name"),
    [
        (Effect.READS, "InternalServerError"),
        (Effect.MUTATES, "InternalServerError"),
        (Effect.COMMITS, "CommitStateUnknownException"),
    ],
)
async def test_an_unexpected_error_is_logged_and_not_sent(
    caplog: pytest.LogCaptureFixture, effect: Effect, type_name: str
) -> None:
    async def explode(_: RequestContext) -> Response:
        raise ZeroDivisionError("the reactor's password is hunter2")

    client = Client(
        App({"wh": HttpService().catalog()}, HttpOptions(), [Route("GET", "/v1/{prefix}/x", explode, effect=effect)])
    )

    answer = await client.get("/v1/wh/x")

    assert (answer.status, answer.error_type) == (500, type_name)
    assert b"hunter2" not in answer.body
    assert b"ZeroDivision" not in answer.body
    assert "in explode" in caplog.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "namespaces"),
        ("GET", "namespaces/db"),
        ("GET", "namespaces/db/tables"),
        ("GET", "namespaces/db/tables/t"),
        ("DELETE", "namespaces/db/tables/t"),
        ("POST", "namespaces/db/tables/t"),
    ],
)
async def test_a_store_that_is_down_means_try_again(service: HttpService, method: str, path: str) -> None:
    service.store = ScriptedStore(service.clock.now_ms, Rule(anything(), fails=StoreUnavailable("refused by 10.0.0.7")))

    answer = await service.serve().send(method, f"/v1/wh/{path}", b'{"requirements": [], "updates": []}')

    assert (answer.status, answer.error_type) == (503, "ServiceUnavailableException")
    assert answer.headers["Retry-After"] == "1"


KEYLESS = ("POST /api/v1/{prefix}/lineage", "POST /v1/{prefix}/tasks/{task}/retry")
"""They take no key, and store something all the same."""


async def test_a_read_only_catalog_refuses_every_change_with_the_reason(service: HttpService) -> None:
    client = service.serve(read_only_because="the store ignores If-Match")
    body = b'{"name": "x"}'

    for route in ROUTES:
        path = path_of(route.template)
        answer = await client.send(route.method, path, body)
        if route.effect is Effect.READS and route.endpoint not in KEYLESS:
            assert b"read-only" not in answer.body, route.endpoint
        else:
            assert (answer.status, answer.error_type) == (406, "UnsupportedOperationException")
            assert (
                answer.message
                == "This catalog is read-only, since the store could lose commits: the store ignores If-Match"
            )
    assert (await service.client.get("/v1/wh/namespaces/db/tables/t")).status == 200


async def test_a_read_only_catalog_still_answers_for_what_was_done_under_a_key(service: HttpService) -> None:
    table, body, key = "/v1/wh/namespaces/db/tables/t", set_property("a", "1"), service.key()
    made = await service.client.post(table, body, idempotency_key=key)

    closed = service.serve(read_only_because="the store ignores If-Match")
    again = await closed.post(table, body, idempotency_key=key)

    assert made.status == 200
    assert (again.status, again.json) == (made.status, made.json)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "type_name", "message"),
    [
        ("GET", "namespaces?parent=no", None, 404, "NoSuchNamespaceException", "Namespace does not exist: no"),
        ("GET", "namespaces/no%1Fmore", None, 404, "NoSuchNamespaceException", "Namespace does not exist: no.more"),
        ("GET", "namespaces/no/tables", None, 404, "NoSuchNamespaceException", "Namespace does not exist: no"),
        ("GET", "namespaces/no/tables/t", None, 404, "NoSuchTableException", "Table does not exist: no.t"),
        (
            "DELETE",
            "namespaces/db",
            None,
            409,
            "NamespaceNotEmptyException",
            "Namespace db is not empty: drop all tables, views, generic tables, semantic models, namespaces and "
            "policies in it first",
        ),
        ("DELETE", "namespaces/db/tables/u", None, 404, "NoSuchTableException", "Table does not exist: db.u"),
        (
            "POST",
            "namespaces",
            {"namespace": ["db"]},
            409,
            "AlreadyExistsException",
            "Namespace already exists: db",
        ),
        (
            "POST",
            "namespaces/db/tables",
            {"name": "t", "schema": schema("x")},
            409,
            "AlreadyExistsException",
            "Table already exists: db.t",
        ),
        (
            "POST",
            "namespaces/db/tables/u",
            set_property("a", "b"),
            404,
            "NoSuchTableException",
            "Table does not exist: db.u",
        ),
        (
            "POST",
            "namespaces/db/properties",
            {"removals": ["a"], "updates": {"a": "b"}},
            422,
            "UnprocessableEntityException",
            "Invalid namespace update, cannot both set and remove: a",
        ),
        (
            "POST",
            "tables/rename",
            {
                "source": {"namespace": ["db"], "name": "t"},
                "destination": {"namespace": ["no"], "name": "t"},
            },
            404,
            "NoSuchNamespaceException",
            "Namespace does not exist: no",
        ),
    ],
)
async def test_refusals_reach_the_client_with_type_and_text(
    client: Client, method: str, path: str, body: JsonValue, status: int, type_name: str, message: str
) -> None:
    answer = await client.send(method, f"/v1/wh/{path}", b"" if body is None else dumps(body))

    assert (answer.status, answer.error_type, answer.message) == (status, type_name, message)
