"""Each operation of the management API, as each kind of caller: its answer, and that nothing is revealed to those
who may not do it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from arco_catalog.http.management.routes import BASE, MANAGEMENT, SPECIFIED
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.privileges import GRANTABLE
from arco_catalog.telemetry.names import operation as name_of
from tests.access.management_specification import Operation as Described
from tests.access.management_specification import Specification, sources, without_names
from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import view_request

SPECIFICATION = sources()["extract"]
THERE = {
    "principal": "subject",
    "principal-role": "subject-role",
    "catalog": "lake",
    "catalog-role": "subject-in-lake",
    "namespace": "db",
    "table": "t",
    "view": "v",
}
SERVICE = ("root",)
ROLES = ("root", "catalog_admin", "access", "governor")
READERS = ("root", "catalog_admin", "content", "properties", "read-properties")
WRITERS = ("root", "catalog_admin", "content", "properties")
GRANTORS = (*ROLES, "namespace-access")
GOVERNORS = ("root", "catalog_admin", "governor")
LOOKERS = (*GOVERNORS, "content")
NEW_VERSION: JsonObject = {"currentEntityVersion": 1, "properties": {"a": "b"}}
OWNED: JsonObject = {"arco.owner": "ada"}
NEW_CATALOG: JsonObject = {
    "type": "INTERNAL",
    "name": "new",
    "properties": {"default-base-location": "memory:///new"},
    "storageConfigInfo": {"storageType": "FILE", "allowedLocations": []},
}


@dataclass(frozen=True)
class Attempt:
    """A request of an operation that succeeds, as far as the caller may make it: who may, and what its body is."""

    callers: tuple[str, ...]
    body: JsonObject | None = None
    names: Mapping[str, str] = field(default_factory=dict)


ATTEMPTS: Mapping[str, Attempt] = {
    "listCatalogs": Attempt(SERVICE),
    "createCatalog": Attempt(SERVICE, {"catalog": NEW_CATALOG}),
    "getCatalog": Attempt(READERS),
    "updateCatalog": Attempt(WRITERS, {"currentEntityVersion": 1, "properties": {"a": "b"}}),
    "deleteCatalog": Attempt(SERVICE, names={"catalog": "empty"}),
    "listPrincipals": Attempt(SERVICE),
    "createPrincipal": Attempt(SERVICE, {"principal": {"name": "new"}}),
    "getPrincipal": Attempt(SERVICE),
    "updatePrincipal": Attempt(SERVICE, NEW_VERSION),
    "deletePrincipal": Attempt(SERVICE),
    "rotateCredentials": Attempt(("subject",)),
    "resetCredentials": Attempt(SERVICE, {"clientSecret": "a secret of its own"}),
    "listPrincipalRolesAssigned": Attempt(SERVICE),
    "assignPrincipalRole": Attempt(SERVICE, {"principalRole": {"name": "stranger-role"}}),
    "revokePrincipalRole": Attempt(SERVICE),
    "listPrincipalRoles": Attempt(SERVICE),
    "createPrincipalRole": Attempt(SERVICE, {"principalRole": {"name": "new"}}),
    "getPrincipalRole": Attempt(SERVICE),
    "updatePrincipalRole": Attempt(SERVICE, NEW_VERSION),
    "deletePrincipalRole": Attempt(SERVICE),
    "listAssigneePrincipalsForPrincipalRole": Attempt(SERVICE),
    "listCatalogRolesForPrincipalRole": Attempt(SERVICE),
    "assignCatalogRoleToPrincipalRole": Attempt(ROLES, {"catalogRole": {"name": "table-in-lake"}}),
    "revokeCatalogRoleFromPrincipalRole": Attempt(ROLES),
    "listCatalogRoles": Attempt(ROLES),
    "createCatalogRole": Attempt(ROLES, {"catalogRole": {"name": "new"}}),
    "getCatalogRole": Attempt(ROLES),
    "updateCatalogRole": Attempt(ROLES, NEW_VERSION),
    "deleteCatalogRole": Attempt(ROLES),
    "listAssigneePrincipalRolesForCatalogRole": Attempt(ROLES),
    "listGrantsForCatalogRole": Attempt(ROLES),
    "addGrantToCatalogRole": Attempt(GRANTORS, {"grant": on_namespace("TABLE_LIST", "db")}),
    "revokeGrantFromCatalogRole": Attempt(ROLES, {"grant": on_namespace("NAMESPACE_LIST", "db")}),
    "getCatalogNamespaceGovernance": Attempt(LOOKERS),
    "updateCatalogNamespaceGovernance": Attempt(GOVERNORS, OWNED),
    "getCatalogTableGovernance": Attempt((*LOOKERS, "table")),
    "updateCatalogTableGovernance": Attempt(GOVERNORS, OWNED),
    "getCatalogViewGovernance": Attempt(LOOKERS),
    "updateCatalogViewGovernance": Attempt(GOVERNORS, OWNED),
    "listCatalogNamespaceAccess": Attempt(GRANTORS),
    "listCatalogTableAccess": Attempt((*GRANTORS, "table-access")),
    "listCatalogViewAccess": Attempt(GRANTORS),
    "checkPrivileges": Attempt(GRANTORS, {"checks": [{**on_namespace("TABLE_LIST", "db"), "principal": "subject"}]}),
}
CALLERS: Mapping[str, tuple[JsonObject, ...]] = {
    "subject": (on_namespace("NAMESPACE_LIST", "db"),),
    "access": (on_catalog("CATALOG_MANAGE_ACCESS"),),
    "content": (on_catalog("CATALOG_MANAGE_CONTENT"),),
    "properties": (on_catalog("CATALOG_WRITE_PROPERTIES"),),
    "read-properties": (on_catalog("CATALOG_READ_PROPERTIES"),),
    "namespace-access": (on_namespace("CATALOG_MANAGE_ACCESS", "db"),),
    "governor": tuple(
        map(
            on_catalog,
            ("CATALOG_MANAGE_ACCESS", "NAMESPACE_READ_PROPERTIES", "TABLE_READ_PROPERTIES", "VIEW_READ_PROPERTIES"),
        )
    ),
    "table-access": (on_table("CATALOG_MANAGE_ACCESS", "db", "t"),),
    "table": (on_table("TABLE_READ_DATA", "db", "t"),),
    "stranger": (),
}
"""Principals, and what each holds in the catalog; besides root and a catalog's administrator."""
ALL_CALLERS = ("root", "catalog_admin", *CALLERS)
ATTEMPTS = {**ATTEMPTS, "getCaller": Attempt(ALL_CALLERS)}


async def realm(callers: Iterable[str] = ALL_CALLERS) -> RealmApp:
    """A realm with these callers, and with the entities of the attempts."""
    app = await RealmApp().start()
    await app.catalog()
    await app.catalog("empty")
    content = await app.principal("content", *CALLERS["content"])
    assert (await content.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200
    assert (await content.post("/v1/lake/namespaces/db/tables", table_request("t"))).status == 200
    assert (await content.post("/v1/lake/namespaces/db/views", view_request("v"))).status == 200
    for name, grants in CALLERS.items():
        if name in {*callers, "subject", "table", "stranger"} - {"content"}:
            await app.principal(name, *grants)
    await app.principal("catalog_admin")
    admin: JsonObject = {"catalogRole": {"name": "catalog_admin"}}
    await app.ok("PUT", "principal-roles/catalog_admin-role/catalog-roles/lake", admin)
    return app


@dataclass(frozen=True)
class Operation:
    name: str
    method: str
    template: str

    @property
    def attempt(self) -> Attempt:
        return ATTEMPTS[self.name]

    @property
    def parameters(self) -> list[str]:
        return [segment[1:-1] for segment in self.template.split("/") if segment.startswith("{")]

    async def by(self, client: Client, app: RealmApp, **names: str) -> Answer:
        """Tries it, on other things than usual if they are named."""
        path = self.template.removeprefix(f"{BASE}/")
        for parameter, value in {**THERE, **self.attempt.names, **names}.items():
            path = path.replace(f"{{{parameter}}}", value)
        return await app.manage(self.method, path, self.attempt.body, client)


OPERATIONS = [Operation(name_of(route.endpoint), route.method, route.template) for route in MANAGEMENT]


def described(method: str, template: str) -> Described:
    """The specified operation; for governance, which no specification has, the catalog's own."""
    known = SPECIFICATION.operations.get(f"{method} {without_names(template.removeprefix(BASE))}")
    return known or Described(name_of(f"{method} {template}"), [200], "object")


@pytest.mark.parametrize("specification", sources().values(), ids=sources())
def test_the_routes_are_the_operations_of_the_specification(specification: Specification) -> None:
    served = {f"{route.method} {without_names(route.template.removeprefix(BASE))}" for route in SPECIFIED}

    assert served == {*specification.operations}
    assert specification.operations == SPECIFICATION.operations
    assert SPECIFICATION.schemas.items() <= specification.schemas.items()


def test_every_operation_is_tried_by_the_name_that_the_specification_gives_it() -> None:
    assert {described(route.method, route.template).name for route in MANAGEMENT} == {*ATTEMPTS}
    assert {each.name for each in OPERATIONS} == {*ATTEMPTS}


def test_what_can_be_granted_is_what_the_specification_lists() -> None:
    listed = {kind: SPECIFICATION.schemas[f"{kind.capitalize()}Privilege"].values for kind in GRANTABLE}

    assert {kind: sorted(privileges) for kind, privileges in GRANTABLE.items()} == {
        kind: sorted(values) for kind, values in listed.items()
    }


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
async def test_an_allowed_caller_gets_the_specified_answer(operation: Operation) -> None:
    specified = described(operation.method, operation.template)
    app = await realm(operation.attempt.callers)
    for place, caller in enumerate(operation.attempt.callers):
        if place and operation.method != "GET":
            app = await realm(operation.attempt.callers)

        answer = await operation.by(app.client(caller), app)

        assert answer.status == specified.statuses[0], (caller, answer.body)
        if specified.answer is None:
            assert answer.body == b""
        else:
            assert [*SPECIFICATION.faults(answer.json, specified.answer)] == []


async def test_a_caller_without_rights_does_not_learn_what_exists() -> None:
    app = await realm()
    tried = 0
    for operation in OPERATIONS:
        for caller in {*ALL_CALLERS} - {*operation.attempt.callers}:
            client = app.client(caller)
            answer = await operation.by(client, app)
            assert answer.status == 403, (operation.name, caller, answer.body)
            for parameter in operation.parameters:
                missing = await operation.by(client, app, **{parameter: "nowhere"})
                assert missing.status == 403, (operation.name, caller, parameter, missing.body)
                if caller == "stranger":
                    named = operation.attempt.names.get(parameter) or THERE[parameter]
                    assert missing.message in (answer.message, answer.message.replace(named, "nowhere"))
                tried += 1
    assert tried > 300


async def test_a_missing_object_is_not_found_for_allowed_callers() -> None:
    app = await realm()
    for operation in OPERATIONS:
        # The rights of some are on one object, too few to learn that another does not exist.
        for caller in {*operation.attempt.callers} - {"subject", "table", "table-access"}:
            for parameter in operation.parameters:
                if (caller, parameter) == ("namespace-access", "namespace"):
                    continue
                other_catalog = parameter == "catalog" and caller != "root"

                answer = await operation.by(app.client(caller), app, **{parameter: "nowhere"})

                assert answer.status == (403 if other_catalog else 404), (operation.name, caller, parameter)
                assert "nowhere" in answer.message


async def test_a_request_without_a_token_learns_nothing() -> None:
    app = await realm()
    for operation in OPERATIONS:
        for names in ({}, dict.fromkeys(operation.parameters, "nowhere")):
            answer = await operation.by(Client(app.app), app, **names)

            assert (answer.status, answer.error_type) == (401, "NotAuthorizedException"), operation.name


async def test_a_principal_that_must_rotate_may_do_nothing_else() -> None:
    app = await realm()
    await app.ok("POST", "principals", {"principal": {"name": "new"}, "credentialRotationRequired": True})
    await app.adopt("new")
    for role in ("service_admin", "catalog_admin-role"):
        await app.ok("PUT", "principals/new/principal-roles", {"principalRole": {"name": role}})
    new = app.client("new")

    for operation in OPERATIONS:
        answer = await operation.by(new, app)

        assert (answer.status, "must rotate credentials first" in answer.message) == (403, True), operation.name
    assert (await app.manage("POST", "principals/new/rotate", client=new)).status == 200
    assert (await app.manage("GET", "principals", client=new)).status == 200
