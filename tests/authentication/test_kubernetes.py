"""Service accounts of Kubernetes: a server trusts a cluster whose documents and tokens have its API server's form."""

import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest
from aiohttp import web

from arco_catalog.authentication.claims import claim_at
from arco_catalog.iceberg.json import JsonObject
from tests.authentication.issuer import private_key, public_jwk
from tests.cli.process import CompletedProcess, arco, serving
from tests.support.certificates import Authority
from tests.support.served_realms import bootstrapped, manage
from tests.support.stub_server import StubServer, stub_server

AUDIENCE = "arco-catalog"
KEY_ID = "OAjVVaejWFc0Yt9ykr0_8lMMuRNs67OXTWHsN02Pkyw"
ACCOUNT = "system:serviceaccount:lake:loader"
UID = "e6a8680e-d103-4cce-80ea-03acbbeacf7d"


@dataclass
class Cluster:
    """An API server's documents about its service accounts, and the tokens that it signs."""

    authority: Authority
    server: StubServer
    closed: set[str]

    def token(self, **changed: Any) -> str:
        """A token as the kubelet requests it for a pod: its header has no type."""
        now = int(time.time())
        claims = {
            "aud": [AUDIENCE],
            "exp": now + 3_607,
            "iat": now,
            "iss": self.server.uri,
            "jti": "e51f1fbc-4733-4b85-a59f-ba80c0523874",
            "kubernetes.io": {
                "namespace": "lake",
                "node": {"name": "worker-1", "uid": "517eb86e-b863-451b-bf70-86cb61439a3a"},
                "pod": {"name": "loader-7d9c", "uid": "0d8b260e-ef0e-45fb-be8e-ff44f97722e8"},
                "serviceaccount": {"name": "loader", "uid": UID},
            },
            "nbf": now,
            "sub": ACCOUNT,
        }
        header = {"alg": "RS256", "kid": KEY_ID, "typ": None}
        return jwt.encode({**claims, **changed}, private_key("RS256", 0), "RS256", headers=header)


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    """An API server that publishes its issuer to callers without a login, by https with the cluster's own authority."""
    authority = Authority.make(folder / "ca.crt", "kubernetes")
    certificate, key = authority.issue(folder, "kube-apiserver", address="127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    closed: set[str] = set()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path in closed:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
            return web.json_response(status, status=403)
        here = f"https://{request.host}"
        if request.path == "/.well-known/openid-configuration":
            return web.json_response(
                {
                    "issuer": here,
                    "jwks_uri": f"{here}/openid/v1/jwks",
                    "response_types_supported": ["id_token"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["RS256"],
                }
            )
        key_set = {"keys": [public_jwk(private_key("RS256", 0), KEY_ID, alg="RS256")]}
        return web.Response(text=json.dumps(key_set), content_type="application/jwk-set+json")

    async with stub_server(handle, tls) as server:
        yield Cluster(authority, server, closed)


@dataclass(frozen=True)
class Pod:
    """A pod with a token in a file, beside a server that trusts its cluster."""

    uri: str
    file: Path

    async def check(self, token: str) -> CompletedProcess:
        """Checks its own right to create tables, after the kubelet has put a token into the file."""
        self.file.write_text(token)
        check = ("grants", "check", "-", "TABLE_CREATE", "--url", self.uri, "--json")
        return await arco(*check, "--token-file", str(self.file))


@asynccontextmanager
async def pod(folder: Path, running: Cluster, subject: str, **settings: str) -> AsyncIterator[Pod]:
    """A pod whose service account is the principal `loader`, which may do everything in the catalog."""
    store = f"file:{folder}/lake"
    await bootstrapped(store)
    for command in (
        ("principals", "create", "loader", "--property", f"arco.subject={running.server.uri} {subject}"),
        ("roles", "create", "loading"),
        ("roles", "assign", "loading", "--to", "loader"),
        ("roles", "assign", "catalog_admin", "--catalog-role", "--to", "loading"),
    ):
        await manage(store, *command)
    trusting = {
        "ARCO_AUTH": "oidc",
        "ARCO_OIDC_ISSUERS": running.server.uri,
        "ARCO_OIDC_AUDIENCES": AUDIENCE,
        "SSL_CERT_FILE": str(running.authority.file),
    }
    async with serving(store, "--quiet", **trusting, **settings) as server:
        yield Pod(server.uri, folder / "token")


async def test_a_pod_is_the_principal_of_its_service_account(tmp_path: Path) -> None:
    async with cluster(tmp_path) as running, pod(tmp_path, running, ACCOUNT) as mounted:
        first = await mounted.check(running.token())
        renewed = await mounted.check(running.token(jti="another"))
        for_the_cluster = await mounted.check(running.token(aud=[running.server.uri]))
        neighbour = await mounted.check(running.token(sub="system:serviceaccount:lake:reader"))

    for checked in (first, renewed):
        assert checked.code == 0, checked
        assert json.loads(checked.out)["principal"] == "loader"
    assert [for_the_cluster.code, neighbour.code] == [1, 1]


async def test_the_uid_of_an_account_may_be_the_principal_and_another_account_of_its_name_is_another(
    tmp_path: Path,
) -> None:
    by_uid = {"ARCO_OIDC_PRINCIPAL_CLAIM": "kubernetes.io.serviceaccount.uid"}
    async with cluster(tmp_path) as running, pod(tmp_path, running, UID, **by_uid) as mounted:
        same = await mounted.check(running.token())
        successor = {"namespace": "lake", "serviceaccount": {"name": "loader", "uid": "another"}}
        made_again = await mounted.check(running.token(**{"kubernetes.io": successor}))

    assert (same.code, made_again.code) == (0, 1), (same, made_again)


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/openid/v1/jwks"])
async def test_a_cluster_that_shows_its_issuer_to_members_alone_is_unavailable(tmp_path: Path, path: str) -> None:
    async with cluster(tmp_path) as running, pod(tmp_path, running, ACCOUNT) as mounted:
        running.closed.add(path)
        refused = await mounted.check(running.token())

    assert refused.code == 1
    assert "the keys of its issuer" in refused.err


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("kubernetes.io.serviceaccount.uid", UID),
        ("kubernetes.io.namespace", "lake"),
        ("kubernetes.io", {"namespace": "lake", "serviceaccount": {"uid": UID}}),
        ("a.b.c", 1),
        ("a.b.d", None),
        ("a", {"b": {"d": 3}}),
        ("kubernetes.io.serviceaccount.uid.x", None),
        ("kubernetes", None),
        (".", None),
        ("", None),
    ],
)
def test_a_claim_is_found_by_names_that_may_have_dots(path: str, expected: object) -> None:
    claims: JsonObject = {
        "kubernetes.io": {"namespace": "lake", "serviceaccount": {"uid": UID}},
        "a.b": {"c": 1},
        "a": {"b": {"d": 3}},
    }
    assert claim_at(claims, path) == expected
