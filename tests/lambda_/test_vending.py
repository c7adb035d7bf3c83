"""A whole deployment behind each kind of gateway: logins, grants, and credentials for the files of tables."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest
from botocore.session import Session  # type: ignore[import-untyped]

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonObject
from tests.cli.in_process import arco
from tests.lambda_.conftest import ONE_ENDPOINT, Caller, Start
from tests.lambda_.test_realm import ADA, KEY, MANAGEMENT, bearer, token
from tools.gateway.events import API_ID
from tools.support.asgi_client import Answer
from tools.support.request_bodies import schema, set_property
from tools.support.s3_servers import S3Server

LAKE = "lake"
CONFIG = f"/v1/config?warehouse={LAKE}"
NAMESPACES = f"/v1/{LAKE}/namespaces"
TABLES = f"{NAMESPACES}/db/tables"
ROLE = "arn:aws:iam::123456789012:role/vended"
VENDED = ("X-Iceberg-Access-Delegation", "vended-credentials")
SIGNED = ("X-Iceberg-Access-Delegation", "remote-signing")
READS = ("TABLE_READ_DATA", "TABLE_LIST", "NAMESPACE_LIST")

Header = tuple[str, str]


@dataclass(frozen=True)
class Root:
    """Manages the realm, as the principal that `arco bootstrap` made."""

    caller: Caller
    login: Header

    def put(self, path: str, body: JsonObject) -> Answer:
        typed = ("Content-Type", "application/json")
        data = json.dumps(body).encode()
        answer = self.caller.send("PUT", f"{MANAGEMENT}/{path}", data, (typed, self.login))
        assert answer.status in (200, 201), answer.body
        return answer

    def post(self, path: str, body: JsonObject) -> JsonObject:
        answer = self.caller.post(f"{MANAGEMENT}/{path}", body, self.login)
        assert answer.status == 201, answer.body
        return answer.json if answer.body else {}

    def catalog(self, store: str, s3: S3Server) -> None:
        """Makes a catalog that vends, by a role that the server's own STS lets it assume."""
        base = f"{store}/{LAKE}"
        reached: JsonObject = {
            "endpoint": s3.endpoint,
            "stsEndpoint": s3.endpoint,
            "region": "us-east-1",
            "pathStyleAccess": True,
        }
        storage: JsonObject = {"storageType": "S3", "allowedLocations": [base], "roleArn": ROLE, **reached}
        properties: JsonObject = {"default-base-location": base}
        made: JsonObject = {"type": "INTERNAL", "name": LAKE, "properties": properties, "storageConfigInfo": storage}
        self.post("catalogs", {"catalog": made})
        grant: JsonObject = {"grant": {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}}
        self.put(f"catalogs/{LAKE}/catalog-roles/catalog_admin/grants", grant)

    def principal(self, name: str, properties: Mapping[str, str], *privileges: str) -> tuple[str, str]:
        """Makes a principal that has these privileges in the whole catalog. Returns its id and its secret."""
        made = self.post("principals", {"principal": {"name": name, "properties": {**properties}}})
        role: JsonObject = {"principalRole": {"name": name}}
        self.post("principal-roles", role)
        self.put(f"principals/{name}/principal-roles", role)
        catalog_role: JsonObject = {"catalogRole": {"name": name}}
        self.post(f"catalogs/{LAKE}/catalog-roles", catalog_role)
        self.put(f"principal-roles/{name}/catalog-roles/{LAKE}", catalog_role)
        for privilege in privileges:
            grant: JsonObject = {"grant": {"type": "catalog", "privilege": privilege}}
            self.put(f"catalogs/{LAKE}/catalog-roles/{name}/grants", grant)
        credentials = cast(JsonObject, made["credentials"])
        return str(credentials["clientId"]), str(credentials["clientSecret"])


def bootstrapped(environment: Mapping[str, str]) -> tuple[str, str]:
    """What the root principal of a new realm logs in with."""
    made = asyncio.run(arco("bootstrap", "--json", **environment))
    assert made.code == 0, made.err
    credentials = json.loads(made.out)
    return credentials["client_id"], credentials["client_secret"]


def session_of(loaded: Answer) -> Mapping[str, Any]:
    """The credentials in an answer, which must be of STS."""
    assert loaded.status == 200, loaded.body
    [credential] = cast(list[JsonObject], loaded.json["storage-credentials"])
    config = cast(dict[str, str], credential["config"])
    assert config["s3.session-token"]
    assert config["s3.access-key-id"] == cast(dict[str, str], loaded.json["config"])["s3.access-key-id"]
    location = str(cast(JsonObject, loaded.json["metadata"])["location"])
    assert location.startswith(str(credential["prefix"]).rstrip("/"))
    return config


@pytest.mark.parametrize("endpoint", ONE_ENDPOINT)
def test_a_realm_behind_each_kind_of_gateway_from_its_first_login_to_vended_credentials(
    start: Start, deployed: Callable[[], dict[str, str]], s3_server: S3Server, endpoint: Endpoint
) -> None:
    deployment = deployed()
    environment = {
        **deployment,
        "ARCO_AUTH": "gateway,internal",
        "ARCO_GATEWAY_APIS": API_ID,
        "ARCO_TOKEN_KEY_SECRET": secret_of(s3_server, KEY),
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": s3_server.endpoint,
    }
    client = bootstrapped(deployment)
    with start(environment, endpoint) as caller:
        root = Root(caller, bearer(caller, client))
        root.catalog(deployment["ARCO_STORE"], s3_server)
        reader = root.principal("reader", {}, *READS)
        root.principal("ada", {"arco.subject": f"aws {ADA.rpartition('/')[0]}"}, "TABLE_READ_DATA", "TABLE_WRITE_DATA")

        assert caller.post(NAMESPACES, {"namespace": ["db"]}, root.login).status == 200
        table = {"name": "t", "schema": schema("a")}
        made = caller.post(TABLES, table, root.login, VENDED)
        assert session_of(made)
        assert caller.post(f"{TABLES}/t", set_property("p", "1"), root.login).status == 200

        login = bearer(caller, reader)
        vended = session_of(caller.get(f"{TABLES}/t", login, VENDED))
        assert vended["client.refresh-credentials-endpoint"] == f"v1/{LAKE}/namespaces/db/tables/t/credentials"
        again = caller.get(f"{TABLES}/t/credentials", login)
        assert cast(list[JsonObject], again.json["storage-credentials"])[0]["config"] == vended
        denied = caller.post(f"{TABLES}/t", set_property("p", "2"), login)
        assert (denied.status, caller.post(NAMESPACES, {"namespace": ["x"]}, login).status) == (403, 403)
        assert "TABLE_" in denied.message

        for stranger in ((), (("Authorization", "Bearer a.b.c"),), (("Authorization", f"Bearer {KEY}"),)):
            for target in (CONFIG, f"{TABLES}/t", f"{TABLES}/no", f"{MANAGEMENT}/catalogs", "/v1/nowhere"):
                assert caller.get(target, *stranger).status == 401
        assert token(caller, (reader[0], client[1])).status == 401

    with start(environment, endpoint, "--caller", ADA) as caller:
        assert session_of(caller.get(f"{TABLES}/t", VENDED))
        assert caller.post(f"{TABLES}/t", set_property("p", "3")).status == 200
        assert caller.post(f"{TABLES}/t", set_property("p", "4"), login).status == 200  # the gateway's word decides
    with start(environment, endpoint, "--caller", ADA.replace("/ada/", "/eve/")) as caller:
        assert caller.get(f"{TABLES}/t", VENDED).status == 401


def test_requests_are_signed_for_who_may_make_them(
    start: Start, deployed: Callable[[], dict[str, str]], s3_server: S3Server
) -> None:
    deployment = deployed()
    client = bootstrapped(deployment)
    with start({**deployment, "ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": KEY}) as caller:
        root = Root(caller, bearer(caller, client))
        root.catalog(deployment["ARCO_STORE"], s3_server)
        login = bearer(caller, root.principal("reader", {}, *READS))
        assert caller.post(NAMESPACES, {"namespace": ["db"]}, root.login).status == 200
        assert caller.post(TABLES, {"name": "t", "schema": schema("a")}, root.login).status == 200
        loaded = caller.get(f"{TABLES}/t", login, SIGNED)
        assert cast(dict[str, str], loaded.json["config"])["s3.remote-signing-enabled"] == "true"
        location = str(cast(JsonObject, loaded.json["metadata"])["location"])
        file = f"{s3_server.endpoint}/{location.removeprefix('s3://')}/data/1.parquet"

        def signed(method: str, uri: str) -> Answer:
            asked = {"region": "us-east-1", "method": method, "uri": uri, "headers": {}}
            return caller.post(f"{TABLES}/t/sign", asked, login)

        assert "authorization" in cast(JsonObject, signed("GET", file).json["headers"])
        assert signed("PUT", file).status == 403
        assert signed("GET", file.replace("/data/", "-beside/")).status == 403


def secret_of(s3: S3Server, value: str) -> str:
    """The ARN of a secret of Secrets Manager, which the same server has."""
    manager = Session().create_client(
        "secretsmanager",
        region_name="us-east-1",
        endpoint_url=s3.endpoint,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key,
    )
    found = manager.list_secrets()["SecretList"]
    return str(found[0]["ARN"] if found else manager.create_secret(Name="arco", SecretString=value)["ARN"])
