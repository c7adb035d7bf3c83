"""The zip that verifies tokens of other issuers: what it holds more than the usual one, and that it does."""

import asyncio
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from tests.lambda_.conftest import Caller, Start
from tests.lambda_.test_realm import CONFIG, KEY, MANAGEMENT, bearer
from tests.lambda_.test_vending import bootstrapped
from tests.support.oidc_provider import oidc_provider
from tools.gateway.events import API_ID
from tools.package import PLATFORMS, Variant, build

LIMIT_BYTES = 110_000_000  # of which fastavro is 26 MB; Lambda's own is 250 MB
ZIPPED_LIMIT_BYTES = 40_000_000  # and 50 MB, to be uploaded as it is
AUDIENCE = "arco"


@pytest.fixture(scope="module")
def oidc_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("package") / "arco-catalog-lambda-oidc.zip"
    build(path, Variant.OIDC)
    return path


def test_it_is_small_and_has_its_compiled_modules_for_every_platform(oidc_archive: Path) -> None:
    with zipfile.ZipFile(oidc_archive) as opened:
        names = opened.namelist()
        assert sum(entry.file_size for entry in opened.infolist()) < LIMIT_BYTES
    assert oidc_archive.stat().st_size < ZIPPED_LIMIT_BYTES
    compiled: dict[str, set[str]] = {}
    for name in names:
        if name.endswith(".so"):
            module, _, platform = name.partition(".cpython-")
            compiled.setdefault(module, set()).add(platform)
    assert "cryptography/hazmat/bindings/_rust" in compiled
    assert all(platforms == {f"{each.tag}.so" for each in PLATFORMS} for platforms in compiled.values()), compiled


@pytest.mark.needs("node", "npm")
def test_owners_of_an_issuer_s_tokens_are_let_in_beside_clients_with_a_secret(
    start: Start, deployed: Callable[[], dict[str, str]], oidc_archive: Path
) -> None:
    deployment = deployed()
    client = bootstrapped(deployment)

    async def let_in() -> None:
        async with oidc_provider(AUDIENCE) as provider:
            environment = {
                **deployment,
                "ARCO_AUTH": "gateway,internal,oidc",
                "ARCO_GATEWAY_APIS": API_ID,
                "ARCO_TOKEN_KEY": KEY,
                "ARCO_OIDC_ISSUERS": provider.issuer,
                "ARCO_OIDC_AUDIENCES": AUDIENCE,
                "ARCO_OIDC_LOOPBACK_HTTP": "true",
            }
            token = ("Authorization", f"Bearer {await provider.token()}")
            with start(environment, Endpoint.FUNCTION_URL, zipped=oidc_archive) as caller:
                await asyncio.to_thread(log_in, caller, client, provider.issuer, token)

    asyncio.run(let_in())


def log_in(caller: Caller, client: tuple[str, str], issuer: str, token: tuple[str, str]) -> None:
    """As the owner of a token: unknown, registered, and with a role."""
    root = bearer(caller, client)
    assert caller.get(CONFIG, token).status == 401
    known = {"principal": {"name": "ada", "properties": {"arco.subject": f"{issuer} ada"}}}
    assert caller.post(f"{MANAGEMENT}/principals", known, root).status == 201
    assert caller.get(CONFIG, token).status == 404
    body = json.dumps({"principalRole": {"name": "service_admin"}}).encode()
    typed = ("Content-Type", "application/json")
    given = caller.send("PUT", f"{MANAGEMENT}/principals/ada/principal-roles", body, (typed, root))
    assert given.status == 201, given.body
    assert caller.get(CONFIG, token).status == 200
    assert caller.get(CONFIG, (token[0], f"{token[1][:-8]}AAAAAAAA")).status == 401
    assert caller.get(CONFIG).status == 401
