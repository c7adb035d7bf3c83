"""A server of Polaris's specification, which no registry has as a program: the answers of its management API and of
Iceberg's API, for one realm, with fields that no version of this catalog knows."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from aiohttp import web
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.support.stub_server import stub_server

MANAGEMENT, CATALOG, POLARIS = "/api/management/v1", "/api/catalog/v1", "/api/catalog/polaris/v1"
TOKEN = "a-token-of-theirs"
SCHEMA = Schema(NestedField(1, "x", LongType()))
TIMES = {"createTimestamp": 1, "lastUpdateTimestamp": 2, "entityVersion": 3}
NEWER = {"fieldOfALaterVersion": {"nested": [1]}}
"""A field that the specification does not have yet."""


@dataclass
class ForeignRealm:
    """What the server answers: the document of each path, without its query, or a function of the query. `uri` is the
    server's, and `requests` are those that came."""

    documents: dict[str, Any] = field(default_factory=dict)
    uri: str = ""
    requests: list[str] = field(default_factory=list)
    folder: Path = Path()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        path = unquote(request.path)
        if path == f"{CATALOG}/oauth/tokens":
            return web.json_response({"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600})
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return web.json_response(
                {"error": {"type": "NotAuthorizedException", "message": "no", "code": 401}}, status=401
            )
        found = self.documents.get(path)
        if isinstance(found, web.StreamResponse):
            return web.Response(status=found.status, headers=found.headers)
        if callable(found):
            found = found(request.query)
        if found is None:
            error = {"type": "NotFoundException", "message": f"nothing at {path}", "code": 404}
            return web.json_response({"error": error}, status=404)
        return web.json_response(found)

    @property
    def managed(self) -> Mapping[str, Any]:
        """The documents of the management API."""
        return {path: each for path, each in self.documents.items() if path.startswith(MANAGEMENT)}


def entity(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "properties": {}, **TIMES, **more}


def polaris(folder: Path, tables: Sequence[str] = ("t", "u")) -> ForeignRealm:
    """A realm with the catalogs `lake`, which has tables, and `federated`, which has another server's; with people,
    roles and grants, some of which no other server has."""
    made = load_catalog("src", type="sql", uri=f"sqlite:///{folder}/src.db", warehouse=f"file://{folder}/src")
    made.create_namespace("sales")
    locations = {name: made.create_table(("sales", name), schema=SCHEMA).metadata_location for name in tables}
    realm = ForeignRealm(folder=folder)
    documents = realm.documents
    storage = {
        "storageType": "FILE",
        "allowedLocations": [f"file://{folder}/src/"],
        "storageName": "named at the server",
        **NEWER,
    }
    lake = entity("lake", type="INTERNAL", storageConfigInfo=storage)
    lake["properties"] = {
        "default-base-location": f"file://{folder}/src",
        "polaris.config.drop-with-purge.enabled": "true",
        "polaris.internal": "theirs",
        "owner": "ann",
    }
    connection = {"connectionType": "ICEBERG_REST", "uri": "https://elsewhere.example.com"}
    remote = {"storageType": "S3", "allowedLocations": ["s3://b/f"], "roleArn": "arn:aws:iam::1:role/r"}
    federated = entity("federated", type="EXTERNAL", storageConfigInfo=remote, connectionConfigInfo=connection)
    federated["properties"] = {"default-base-location": "s3://b/f"}
    documents[f"{MANAGEMENT}/catalogs"] = {"catalogs": [lake, federated], **NEWER}
    documents[f"{MANAGEMENT}/principals"] = {
        "principals": [entity("root", clientId="a"), entity("ann", clientId="b", **NEWER), entity("etl", clientId="c")]
    }
    roles = [entity("service_admin"), entity("analysts", federated=False), entity("loaders", federated=False)]
    documents[f"{MANAGEMENT}/principal-roles"] = {"roles": roles}
    for name, held in (("root", "service_admin"), ("ann", "analysts"), ("etl", "loaders")):
        documents[f"{MANAGEMENT}/principals/{name}/principal-roles"] = {"roles": [entity(held)]}
    _add_roles(documents)
    _add_tables(documents, locations)
    return realm


def _add_roles(documents: dict[str, Any]) -> None:
    roles = f"{MANAGEMENT}/catalogs/lake/catalog-roles"
    documents[roles] = {"roles": [entity("catalog_admin"), entity("readers"), entity("writers")]}
    users = {"catalog_admin": "service_admin", "readers": "analysts", "writers": "loaders"}
    for name, user in users.items():
        documents[f"{roles}/{name}/principal-roles"] = {"roles": [entity(user)]}
    documents[f"{roles}/catalog_admin/grants"] = {
        "grants": [
            {"type": "catalog", "privilege": "CATALOG_MANAGE_ACCESS"},
            {"type": "catalog", "privilege": "CATALOG_MANAGE_METADATA"},
        ]
    }
    documents[f"{roles}/readers/grants"] = {
        "grants": [
            {"type": "table", "namespace": ["sales"], "tableName": "t", "privilege": "TABLE_READ_DATA"},
            {"type": "namespace", "namespace": ["sales"], "privilege": "TABLE_LIST"},
            {"type": "namespace", "namespace": ["sales"], "privilege": "TABLE_OF_A_LATER_VERSION"},
            {"type": "policy", "namespace": ["sales"], "policyName": "p", "privilege": "POLICY_READ"},
            {"type": "policy", "namespace": ["sales"], "policyName": "gone", "privilege": "POLICY_READ"},
            {"type": "index", "namespace": ["sales"], "indexName": "i", "privilege": "INDEX_READ"},
        ]
    }
    documents[f"{roles}/writers/grants"] = {"grants": [{"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}]}
    federated = f"{MANAGEMENT}/catalogs/federated/catalog-roles"
    documents[federated] = {"roles": [entity("catalog_admin")]}
    documents[f"{federated}/catalog_admin/principal-roles"] = {"roles": [entity("service_admin")]}
    documents[f"{federated}/catalog_admin/grants"] = {"grants": []}


def _add_tables(documents: dict[str, Any], locations: Mapping[str, str]) -> None:
    """The answers of Iceberg's API, of which the tables come on pages of one."""

    def config(query: Mapping[str, str]) -> Any:
        return {"defaults": {}, "overrides": {"prefix": query["warehouse"]}, **NEWER}

    documents[f"{CATALOG}/config"] = config
    documents[f"{CATALOG}/lake/namespaces"] = lambda query: {"namespaces": [] if "parent" in query else [["sales"]]}
    documents[f"{CATALOG}/lake/namespaces/sales"] = {"namespace": ["sales"], "properties": {"comment": "theirs"}}
    names = [*locations]

    def tables(query: Mapping[str, str]) -> Any:
        place = int(query["pageToken"] or 0)
        following = str(place + 1) if place + 1 < len(names) else None
        listed = [{"namespace": ["sales"], "name": name} for name in names[place : place + 1]]
        return {"identifiers": listed, "next-page-token": following}

    documents[f"{CATALOG}/lake/namespaces/sales/tables"] = tables
    native = f"{POLARIS}/lake/namespaces/sales"
    documents[f"{native}/policies"] = {"identifiers": [{"namespace": ["sales"], "name": "p"}]}
    policy = {"name": "p", "policy-type": "ours", "content": "{}", "version": 4, "inheritable": False, **NEWER}
    documents[f"{native}/policies/p"] = {"policy": policy}
    documents[f"{native}/generic-tables"] = {"identifiers": [{"namespace": ["sales"], "name": "g"}]}
    documents[f"{native}/generic-tables/g"] = {"table": {"name": "g", "format": "delta", "properties": {"a": "b"}}}
    for name, location in locations.items():
        show(documents, name, location)


def show(documents: dict[str, Any], name: str, location: str) -> None:
    """Lets a table of `sales` have this metadata file."""
    metadata = json.loads(Path(location.removeprefix("file://")).read_bytes())
    loaded = {"metadata-location": location, "metadata": metadata, "config": {}, **NEWER}
    documents[f"{CATALOG}/lake/namespaces/sales/tables/{name}"] = loaded


@asynccontextmanager
async def serving_polaris(realm: ForeignRealm) -> AsyncIterator[ForeignRealm]:
    """Serves the realm on a free port."""
    async with stub_server(realm.handle) as server:
        realm.uri = server.uri
        yield realm
