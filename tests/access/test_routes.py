"""One table of routes and privileges, written beside the one in http/routes.py: what each request needs, and who of a
few usual callers may make it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pytest

from arco_catalog.http.management.routes import MANAGEMENT, TOKENS
from arco_catalog.http.routes import HEALTH, ROUTES
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.privileges import GRANTABLE, Privilege, allowed, implied
from tests.access.lake import ATTACHED, DB, MODEL, NAMESPACES, POLARIS_DB, Lake, T, is_denied, send
from tests.state.test_lineage import EVENT
from tests.support.realm_service import on_catalog, on_namespace, on_policy, on_table, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import commit_report, scan_report, schema, view_request

P = Privilege

CALLERS: Mapping[str, Sequence[Privilege]] = {
    "stranger": (),
    "reader": (P.NAMESPACE_READ_PROPERTIES, P.TABLE_READ_DATA, P.VIEW_READ_PROPERTIES, P.POLICY_READ),
    "writer": (P.NAMESPACE_READ_PROPERTIES, P.TABLE_WRITE_DATA, P.TABLE_CREATE, P.VIEW_CREATE, P.POLICY_WRITE),
    "manager": (P.CATALOG_MANAGE_CONTENT,),
    "owner": (P.CATALOG_MANAGE_ACCESS, P.CATALOG_MANAGE_METADATA),
}
"""`owner` holds what a catalog's `catalog_admin` has: it may change everything, and read no data."""

EVERYBODY = "reader writer manager owner"
WRITERS = "writer manager owner"
MANAGERS = "manager owner"

Body = Callable[[Lake], JsonObject]


@dataclass(frozen=True)
class Case:
    """A request, the privileges that it takes together, and which of `CALLERS` has them. `answer` is the error that it
    gets if it is allowed, None for a success."""

    name: str
    endpoint: str
    target: str
    needs: Sequence[Privilege]
    who: str
    body: Body | None = None
    answer: str | None = None

    @property
    def method(self) -> str:
        return self.endpoint.partition(" ")[0]

    async def send(self, lake: Lake, client: Client) -> Answer:
        """Sends it."""
        return await send(client, self.method, self.target, self.body(lake) if self.body is not None else None)

    def is_allowed(self, answer: Answer) -> bool:
        """Whether the answer is the one of an allowed request."""
        if self.answer is not None:
            return answer.status >= 400 and answer.error_type == self.answer
        return answer.status < 300


def updates(*found: JsonObject) -> Body:
    """A commit to `t`."""
    return lambda lake: {"requirements": [], "updates": [*found]}


def renames(kind: str) -> Body:
    """A rename from `db` to `other`."""
    return lambda lake: {
        "source": {"namespace": ["db"], "name": kind},
        "destination": {"namespace": ["other"], "name": "new"},
    }


def registers(name: str, **more: bool) -> Body:
    """The registration of the file that no table has."""
    return lambda lake: {"name": name, "metadata-location": lake.table_file, **more}


def change(name: str, *found: JsonObject, creates: bool = False) -> JsonObject:
    """One table's part of a transaction."""
    requirements: list[JsonObject] = [{"type": "assert-create"}] if creates else []
    return {
        "identifier": {"namespace": ["db"], "name": name},
        "requirements": [*requirements],
        "updates": [*found],
    }


SET: JsonObject = {"action": "set-properties", "updates": {"a": "b"}}
REMOVE: JsonObject = {"action": "remove-properties", "removals": ["a"]}
MAKE: Sequence[JsonObject] = (
    {"action": "assign-uuid", "uuid": "6e9d1c5e-0a6b-4f2e-9d2c-0f6a0c1b2d3e"},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": {**schema("x"), "schema-id": 0}, "last-column-id": 1},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
)
UNSUPPORTED = "UnsupportedOperationException"
TABLE_ROUTE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
NAMESPACE_ROUTE = "/v1/{prefix}/namespaces/{namespace}"
VIEW_ROUTE = f"{NAMESPACE_ROUTE}/views/{{view}}"
GENERIC_ROUTE = "/polaris/v1/{prefix}/namespaces/{namespace}/generic-tables"
MODEL_ROUTE = "/polaris/v1/{prefix}/namespaces/{namespace}/semantic-models"
POLICY_ROUTE = "/polaris/v1/{prefix}/namespaces/{namespace}/policies"
APPLICABLE = "/polaris/v1/lake/applicable-policies"


def _cases() -> Sequence[Case]:
    ns, views = NAMESPACE_ROUTE, f"{NAMESPACE_ROUTE}/views"
    return (
        Case("config", "GET /v1/config", "/v1/config?warehouse=lake", (), EVERYBODY),
        Case("list namespaces", "GET /v1/{prefix}/namespaces", NAMESPACES, [P.NAMESPACE_LIST], EVERYBODY),
        Case("list children", "GET /v1/{prefix}/namespaces", f"{NAMESPACES}?parent=db", [P.NAMESPACE_LIST], EVERYBODY),
        Case(
            "list a page",
            "GET /v1/{prefix}/namespaces",
            f"{NAMESPACES}?pageSize=1&pageToken=",
            [P.NAMESPACE_LIST],
            EVERYBODY,
        ),
        Case(
            "create namespace",
            "POST /v1/{prefix}/namespaces",
            NAMESPACES,
            [P.NAMESPACE_CREATE],
            MANAGERS,
            lambda lake: {"namespace": ["new"]},
        ),
        Case(
            "create child",
            "POST /v1/{prefix}/namespaces",
            NAMESPACES,
            [P.NAMESPACE_CREATE],
            MANAGERS,
            lambda lake: {"namespace": ["db", "new"]},
        ),
        Case("load namespace", f"GET {ns}", DB, [P.NAMESPACE_READ_PROPERTIES], EVERYBODY),
        Case("head namespace", f"HEAD {ns}", DB, [P.NAMESPACE_LIST], EVERYBODY),
        Case("drop namespace", f"DELETE {ns}", f"{NAMESPACES}/other", [P.NAMESPACE_DROP], MANAGERS),
        Case(
            "namespace properties",
            f"POST {ns}/properties",
            f"{DB}/properties",
            [P.NAMESPACE_WRITE_PROPERTIES],
            MANAGERS,
            lambda lake: {"updates": {"a": "b"}},
        ),
        Case("list tables", f"GET {ns}/tables", f"{DB}/tables", [P.TABLE_LIST], EVERYBODY),
        Case("page of tables", f"GET {ns}/tables", f"{DB}/tables?pageSize=1&pageToken=", [P.TABLE_LIST], EVERYBODY),
        Case(
            "create table",
            f"POST {ns}/tables",
            f"{DB}/tables",
            [P.TABLE_CREATE],
            WRITERS,
            lambda lake: table_request("new"),
        ),
        Case(
            "stage table",
            f"POST {ns}/tables",
            f"{DB}/tables",
            [P.TABLE_CREATE],
            WRITERS,
            lambda lake: {**table_request("new"), "stage-create": True},
        ),
        # The files are those of a dropped table and view, whose place is for those who may read the data there.
        Case(
            "register",
            f"POST {ns}/register",
            f"{DB}/register",
            [P.TABLE_CREATE, P.TABLE_READ_DATA],
            "writer manager",
            registers("new"),
        ),
        Case(
            "register new with overwrite",
            f"POST {ns}/register",
            f"{DB}/register",
            [P.TABLE_CREATE, P.TABLE_READ_DATA],
            "writer manager",
            registers("new", overwrite=True),
        ),
        Case(
            "register with overwrite",
            f"POST {ns}/register",
            f"{DB}/register",
            [P.TABLE_CREATE, P.TABLE_FULL_METADATA, P.TABLE_READ_DATA],
            "manager",
            registers("t", overwrite=True),
        ),
        Case("load table", f"GET {TABLE_ROUTE}", T, [P.TABLE_READ_PROPERTIES], EVERYBODY),
        Case("head table", f"HEAD {TABLE_ROUTE}", T, [P.TABLE_LIST], EVERYBODY),
        Case("commit nothing", f"POST {TABLE_ROUTE}", T, [P.TABLE_WRITE_PROPERTIES], WRITERS, updates()),
        Case("commit", f"POST {TABLE_ROUTE}", T, [P.TABLE_SET_PROPERTIES], WRITERS, updates(SET)),
        Case(
            "commit two",
            f"POST {TABLE_ROUTE}",
            T,
            [P.TABLE_SET_PROPERTIES, P.TABLE_REMOVE_PROPERTIES],
            WRITERS,
            updates(SET, REMOVE),
        ),
        Case(
            "create by commit",
            f"POST {TABLE_ROUTE}",
            f"{DB}/tables/new",
            [P.TABLE_CREATE],
            WRITERS,
            lambda lake: {"requirements": [{"type": "assert-create"}], "updates": [*MAKE]},
        ),
        Case("drop table", f"DELETE {TABLE_ROUTE}", T, [P.TABLE_DROP], MANAGERS),
        Case(
            "purge table",
            f"DELETE {TABLE_ROUTE}",
            f"{T}?purgeRequested=true",
            [P.TABLE_DROP, P.TABLE_WRITE_DATA],
            "manager",
        ),
        Case(
            "scan report",
            f"POST {TABLE_ROUTE}/metrics",
            f"{T}/metrics",
            [P.TABLE_READ_DATA],
            "reader writer manager",
            lambda lake: scan_report(),
        ),
        Case(
            "commit report",
            f"POST {TABLE_ROUTE}/metrics",
            f"{T}/metrics",
            [P.TABLE_WRITE_DATA],
            "writer manager",
            lambda lake: commit_report(),
        ),
        Case(
            "plan a scan",
            f"POST {TABLE_ROUTE}/plan",
            f"{T}/plan",
            [P.TABLE_READ_DATA],
            "reader writer manager",
            lambda lake: {},
        ),
        Case(
            "fetch a plan",
            f"GET {TABLE_ROUTE}/plan/{{plan-id}}",
            f"{T}/plan/x",
            [P.TABLE_READ_DATA],
            "reader writer manager",
            answer="NoSuchPlanIdException",
        ),
        Case(
            "cancel a plan",
            f"DELETE {TABLE_ROUTE}/plan/{{plan-id}}",
            f"{T}/plan/x",
            [P.TABLE_READ_DATA],
            "reader writer manager",
            answer="NoSuchPlanIdException",
        ),
        Case(
            "fetch tasks of a plan",
            f"POST {TABLE_ROUTE}/tasks",
            f"{T}/tasks",
            [P.TABLE_READ_DATA],
            "reader writer manager",
            lambda lake: {"plan-task": "x"},
            "NoSuchPlanTaskException",
        ),
        Case(
            "lineage",
            "POST /api/v1/{prefix}/lineage",
            "/api/v1/lake/lineage",
            [],
            EVERYBODY,
            lambda lake: EVENT,
        ),
        Case(
            "unregister",
            f"POST {TABLE_ROUTE}/unregister",
            f"{T}/unregister",
            [P.TABLE_DROP, P.TABLE_READ_PROPERTIES],
            MANAGERS,
        ),
        Case(
            "undrop", f"POST {TABLE_ROUTE}/undrop", f"{DB}/tables/gone/undrop", [P.TABLE_DROP, P.TABLE_CREATE], MANAGERS
        ),
        Case(
            "rename table",
            "POST /v1/{prefix}/tables/rename",
            "/v1/lake/tables/rename",
            [P.TABLE_DROP, P.TABLE_CREATE],
            MANAGERS,
            renames("t"),
        ),
        Case(
            "transaction",
            "POST /v1/{prefix}/transactions/commit",
            "/v1/lake/transactions/commit",
            [P.TABLE_SET_PROPERTIES, P.TABLE_REMOVE_PROPERTIES],
            WRITERS,
            lambda lake: {"table-changes": [change("t", SET), change("u", REMOVE)]},
        ),
        Case(
            "transaction that creates",
            "POST /v1/{prefix}/transactions/commit",
            "/v1/lake/transactions/commit",
            [P.TABLE_SET_PROPERTIES, P.TABLE_CREATE],
            WRITERS,
            lambda lake: {"table-changes": [change("t", SET), change("new", *MAKE, creates=True)]},
        ),
        Case("list views", f"GET {views}", f"{DB}/views", [P.VIEW_LIST], EVERYBODY),
        Case("create view", f"POST {views}", f"{DB}/views", [P.VIEW_CREATE], WRITERS, lambda lake: view_request("new")),
        Case(
            "register view",
            f"POST {ns}/register-view",
            f"{DB}/register-view",
            [P.VIEW_CREATE, P.TABLE_READ_DATA],
            "writer manager",
            lambda lake: {"name": "new", "metadata-location": lake.view_file},
        ),
        Case("load view", f"GET {VIEW_ROUTE}", f"{DB}/views/v", [P.VIEW_READ_PROPERTIES], "reader manager owner"),
        Case("head view", f"HEAD {VIEW_ROUTE}", f"{DB}/views/v", [P.VIEW_LIST], EVERYBODY),
        Case("replace view", f"POST {VIEW_ROUTE}", f"{DB}/views/v", [P.VIEW_WRITE_PROPERTIES], MANAGERS, updates(SET)),
        Case("drop view", f"DELETE {VIEW_ROUTE}", f"{DB}/views/v", [P.VIEW_DROP], MANAGERS),
        Case(
            "rename view",
            "POST /v1/{prefix}/views/rename",
            "/v1/lake/views/rename",
            [P.VIEW_DROP, P.VIEW_CREATE],
            MANAGERS,
            renames("v"),
        ),
        Case("list functions", f"GET {ns}/functions", f"{DB}/functions", [P.NAMESPACE_LIST], EVERYBODY),
        Case(
            "load function",
            f"GET {ns}/functions/{{function}}",
            f"{DB}/functions/f",
            [P.NAMESPACE_LIST],
            EVERYBODY,
            None,
            "NoSuchFunctionException",
        ),
        Case(
            "credentials",
            f"GET {TABLE_ROUTE}/credentials",
            f"{T}/credentials",
            [P.TABLE_READ_DATA],
            "reader writer manager",
        ),
        Case(
            "sign",
            f"POST {TABLE_ROUTE}/sign",
            f"{T}/sign",
            [P.TABLE_READ_DATA],
            "reader writer manager",
            lambda lake: {
                "method": "GET",
                "uri": "https://s3.example/bucket/key",
                "region": "us-east-1",
                "headers": {},
            },
            UNSUPPORTED,
        ),
    )


def _polaris_cases() -> Sequence[Case]:
    """Of generic tables and policies."""
    generic, policies, one = f"{POLARIS_DB}/generic-tables", f"{POLARIS_DB}/policies", f"{POLICY_ROUTE}/{{policy-name}}"
    applicable = "GET /polaris/v1/{prefix}/applicable-policies"
    content: JsonObject = {"content": '{"enable": true}'}
    return (
        Case("list generic tables", f"GET {GENERIC_ROUTE}", generic, [P.TABLE_LIST], EVERYBODY),
        Case(
            "create generic table",
            f"POST {GENERIC_ROUTE}",
            generic,
            [P.TABLE_CREATE],
            WRITERS,
            lambda lake: {"name": "new", "format": "csv"},
        ),
        Case(
            "load generic table",
            f"GET {GENERIC_ROUTE}/{{generic-table}}",
            f"{generic}/g",
            [P.TABLE_READ_PROPERTIES],
            EVERYBODY,
        ),
        Case(
            "drop generic table", f"DELETE {GENERIC_ROUTE}/{{generic-table}}", f"{generic}/g", [P.TABLE_DROP], MANAGERS
        ),
        Case("list policies", f"GET {POLICY_ROUTE}", policies, [P.POLICY_LIST], EVERYBODY),
        Case(
            "create policy",
            f"POST {POLICY_ROUTE}",
            policies,
            [P.POLICY_CREATE],
            MANAGERS,
            lambda lake: {"name": "new", "type": "system.snapshot-expiry", **content},
        ),
        Case("load policy", f"GET {one}", f"{policies}/p", [P.POLICY_READ], EVERYBODY),
        Case(
            "update policy",
            f"PUT {one}",
            f"{policies}/p",
            [P.POLICY_WRITE],
            WRITERS,
            lambda lake: {"current-policy-version": 0, **content, "description": "new"},
        ),
        Case("drop policy", f"DELETE {one}", f"{policies}/p", [P.POLICY_DROP], MANAGERS),
        Case("drop attached policy", f"DELETE {one}", f"{policies}/q?detach-all=true", [P.POLICY_DROP], MANAGERS),
        *(
            Case(
                f"{does} {target['type']}",
                f"{method} {one}/mappings",
                f"{policies}/{name}/mappings",
                [policy, on],
                MANAGERS,
                lambda lake, target=target: {"target": target},  # type: ignore[misc]  # as it is now
            )
            for does, method, name, policy, places in (
                (
                    "attach",
                    "PUT",
                    "p",
                    P.POLICY_ATTACH,
                    (P.CATALOG_ATTACH_POLICY, P.NAMESPACE_ATTACH_POLICY, P.TABLE_ATTACH_POLICY),
                ),
                (
                    "detach",
                    "POST",
                    "q",
                    P.POLICY_DETACH,
                    (P.CATALOG_DETACH_POLICY, P.NAMESPACE_DETACH_POLICY, P.TABLE_DETACH_POLICY),
                ),
            )
            for target, on in zip(ATTACHED, places, strict=True)
        ),
        Case("what applies to the catalog", applicable, APPLICABLE, [P.CATALOG_READ_PROPERTIES], MANAGERS),
        Case(
            "what applies to a namespace",
            applicable,
            f"{APPLICABLE}?namespace=db",
            [P.NAMESPACE_READ_PROPERTIES],
            EVERYBODY,
        ),
        Case(
            "what applies to a table",
            applicable,
            f"{APPLICABLE}?namespace=db&target-name=t",
            [P.TABLE_READ_PROPERTIES],
            EVERYBODY,
        ),
        Case(
            "what applies to a generic table",
            applicable,
            f"{APPLICABLE}?namespace=db&target-name=g",
            [P.TABLE_READ_PROPERTIES],
            EVERYBODY,
        ),
        Case(
            "what applies to a view",
            applicable,
            f"{APPLICABLE}?namespace=db&target-name=v",
            [P.VIEW_READ_PROPERTIES],
            "reader manager owner",
        ),
    )


def _governance_cases() -> Sequence[Case]:
    """Of governance: of what may be read, and by which principals it may be changed."""
    cases: list[Case] = []
    for kind, route, target, reads, who in (
        ("namespace", NAMESPACE_ROUTE, DB, P.NAMESPACE_READ_PROPERTIES, EVERYBODY),
        ("table", TABLE_ROUTE, T, P.TABLE_READ_PROPERTIES, EVERYBODY),
        ("view", VIEW_ROUTE, f"{DB}/views/v", P.VIEW_READ_PROPERTIES, "reader manager owner"),
    ):
        path, ours = f"{route}/governance", f"{target}/governance"
        cases += (
            Case(f"governance of {kind}", f"GET {path}", ours, [reads], who),
            Case(
                f"govern {kind}",
                f"POST {path}",
                ours,
                [P.CATALOG_MANAGE_ACCESS, reads],
                "owner",
                lambda lake: {"arco.owner": "ada"},
            ),
        )
    return cases


def _inspection_cases() -> Sequence[Case]:
    """Of what people look at besides metadata: timelines, comparisons, lineage."""
    lineage = f"GET {TABLE_ROUTE}/lineage"
    cases = [Case("lineage", lineage, f"{T}/lineage", [P.TABLE_READ_PROPERTIES], EVERYBODY)]
    for kind, route, target, reads, who in (
        ("table", TABLE_ROUTE, T, P.TABLE_READ_PROPERTIES, EVERYBODY),
        ("view", VIEW_ROUTE, f"{DB}/views/v", P.VIEW_READ_PROPERTIES, "reader manager owner"),
    ):
        cases += (
            Case(f"timeline of {kind}", f"GET {route}/timeline", f"{target}/timeline", [reads], who),
            Case(f"version of {kind}", f"GET {route}/timeline/{{version}}", f"{target}/timeline/0", [reads], who),
            Case(f"compare versions of {kind}", f"GET {route}/compare", f"{target}/compare?from=0", [reads], who),
        )
    return cases


def _model_cases() -> Sequence[Case]:
    """Of semantic models."""
    models, one = f"{POLARIS_DB}/semantic-models", f"{MODEL_ROUTE}/{{semantic-model-name}}"
    of_table: JsonObject = {"version": "0.1.1", "semantic_model": '{"datasets": [{"source": "db.t"}]}'}
    return (
        Case("list models", f"GET {MODEL_ROUTE}", models, [P.TABLE_LIST], EVERYBODY),
        Case(
            "create model",
            f"POST {MODEL_ROUTE}",
            models,
            [P.TABLE_CREATE],
            WRITERS,
            lambda lake: {"name": "new", "document": MODEL},
        ),
        Case("load model", f"GET {one}", f"{models}/m", [P.TABLE_READ_PROPERTIES], EVERYBODY),
        Case(
            "replace model",
            f"PUT {one}",
            f"{models}/m",
            [P.TABLE_WRITE_PROPERTIES],
            WRITERS,
            lambda lake: {"document": of_table, "entity-version": lake.model_version},
        ),
        Case("drop model", f"DELETE {one}", f"{models}/m", [P.TABLE_DROP], MANAGERS),
    )


NOTIFICATION: JsonObject = {
    "notification-type": "VALIDATE",
    "payload": {"table-name": "t", "table-uuid": "u", "timestamp": 1, "metadata-location": "memory:///lake/t"},
}
NOTIFY = Case(
    "notify",
    f"POST {TABLE_ROUTE}/notifications",
    f"{T}/notifications",
    [P.TABLE_CREATE, P.TABLE_WRITE_PROPERTIES, P.TABLE_DROP, P.NAMESPACE_CREATE, P.NAMESPACE_DROP],
    MANAGERS,
    lambda lake: NOTIFICATION,
    "BadRequestException",  # the catalog owns its tables
)


def _discovery_cases() -> Sequence[Case]:
    return (
        Case("search", "GET /v1/{prefix}/search", "/v1/lake/search?q=t", (), EVERYBODY),
        Case(
            "resolve",
            "POST /v1/{prefix}/resolve",
            "/v1/lake/resolve",
            (),
            EVERYBODY,
            lambda lake: {"relations": [{"identifier": ["db", "none"]}]},
        ),
        Case("events", "POST /v1/{prefix}/events", "/v1/lake/events", (), EVERYBODY, lambda lake: {}),
        Case("history", "GET /v1/{prefix}/history", "/v1/lake/history", (), EVERYBODY),
        Case("tasks", "GET /v1/{prefix}/tasks", "/v1/lake/tasks", [P.CATALOG_MANAGE_METADATA], MANAGERS),
        Case(
            "task",
            "GET /v1/{prefix}/tasks/{task}",
            "/v1/lake/tasks/none",
            [P.CATALOG_MANAGE_METADATA],
            MANAGERS,
            answer="NotFoundException",
        ),
        Case(
            "retry",
            "POST /v1/{prefix}/tasks/{task}/retry",
            "/v1/lake/tasks/none/retry",
            [P.CATALOG_MANAGE_CONTENT],
            "manager",
            lambda lake: {},
            "NotFoundException",
        ),
        *(
            Case(f"access to {of}", f"GET {route}/access", f"{target}/access", [P.CATALOG_MANAGE_ACCESS], "owner")
            for of, route, target in (
                ("namespace", NAMESPACE_ROUTE, DB),
                ("table", TABLE_ROUTE, T),
                ("view", VIEW_ROUTE, f"{DB}/views/v"),
            )
        ),
    )


CASES = (
    *_cases(),
    *_polaris_cases(),
    *_governance_cases(),
    *_inspection_cases(),
    *_discovery_cases(),
    *_model_cases(),
    NOTIFY,
)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))


def granted_where(privilege: Privilege) -> Sequence[JsonObject]:
    """The widest grants of a privilege."""
    if privilege in GRANTABLE["catalog"]:
        return [on_catalog(privilege)]
    if privilege in GRANTABLE["namespace"]:
        return [on_namespace(privilege, "db")]
    if privilege in GRANTABLE["table"]:
        return [on_table(privilege, "db", "t")]
    if privilege in GRANTABLE["policy"]:
        return [on_policy(privilege, "db", name) for name in ("p", "q")]
    return []


GRANTS = {privilege: grants for privilege in P if (grants := granted_where(privilege))}


def test_every_route_declares_its_requirements() -> None:
    for route in (*HEALTH, *ROUTES, TOKENS, *MANAGEMENT):
        assert (route.requires is not None) != route.public, route.endpoint
    assert {route.endpoint for route in (*HEALTH, *ROUTES, TOKENS, *MANAGEMENT) if route.public} == {
        "GET /health",
        "HEAD /health",
        "GET /openapi.json",
        "POST /v1/oauth/tokens",
    }


def test_every_route_is_tried() -> None:
    assert {case.endpoint for case in CASES} == {route.endpoint for route in ROUTES if not route.public}


def test_every_privilege_is_tried() -> None:
    grantable = frozenset().union(*GRANTABLE.values())
    assert grantable == GRANTS.keys()
    assert len(grantable) == 57


@each_case
@pytest.mark.parametrize("who", CALLERS)
async def test_who_may_do_what(first: Lake, case: Case, who: str) -> None:
    lake = first.copy()
    client = await lake.app.principal(f"a-{who}", *map(on_catalog, CALLERS[who]))

    answer = await case.send(lake, client)

    assert case.is_allowed(answer) if who in case.who.split() else is_denied(answer), (answer.status, answer.body)


@each_case
async def test_what_a_route_states_suffices_and_nothing_less(first: Lake, case: Case) -> None:
    lake = first.copy()
    client = await lake.app.principal("another", on_namespace("NAMESPACE_LIST", "other"))
    for less in case.needs:
        rest = [privilege for privilege in case.needs if privilege is not less]
        if less in allowed(rest):
            continue
        for privilege in rest:
            await lake.app.grant("another", *GRANTS[privilege])
        answer = await case.send(lake, client)
        assert is_denied(answer), (less, answer.status, answer.body)
        for privilege in rest:
            await lake.app.revoke("another", *GRANTS[privilege])
    for privilege in case.needs:
        await lake.app.grant("another", *GRANTS[privilege])

    answer = await case.send(lake, client)

    assert case.is_allowed(answer), (answer.status, answer.body)


@pytest.fixture(scope="module")
def lakes() -> dict[Privilege, Lake]:
    """Lakes by the privilege that `another` lacks there, of all that can be granted."""
    return {}


@each_case
async def test_no_other_privilege_does(first: Lake, lakes: dict[Privilege, Lake], case: Case) -> None:
    """Nor do all others together: a caller without one of those that a request takes is denied."""
    for lacking in case.needs:
        if lacking not in lakes:
            lakes[lacking] = first.copy()
            others = [grants for privilege, grants in GRANTS.items() if lacking not in implied(privilege)]
            await lakes[lacking].app.principal("another", *chain.from_iterable(others))

        answer = await case.send(lake := lakes[lacking].copy(), lake.app.client("another"))

        assert is_denied(answer), (lacking, answer.status, answer.body)


@each_case
async def test_every_privilege_that_implies_it_does(first: Lake, case: Case) -> None:
    for privilege, grants in GRANTS.items():
        if case.needs and implied(privilege) >= {*case.needs} and privilege in GRANTABLE["catalog"]:
            lake = first.copy()
            client = await lake.app.principal("another", *grants)
            answer = await case.send(lake, client)
            assert case.is_allowed(answer), (privilege, answer.status, answer.body)
