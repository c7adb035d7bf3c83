"""A function serves the console if its package has it, and its variable is set."""

from pathlib import Path

import pytest

from arco_catalog.http.console import files
from arco_catalog.http.function_app import function_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.state.runtime import SystemRuntime
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client

OFF = {"ARCO_AUTHORIZATION": "off"}


async def function(service: HttpService, **environment: str) -> Client:
    return Client(await function_app(environment, service.catalog(), HttpOptions(), None, SystemRuntime()))


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(files, "BUILT", tmp_path)
    monkeypatch.setattr(files.read_console, "__defaults__", (tmp_path, None))
    return tmp_path


@pytest.mark.parametrize("authorization", [{}, OFF])
async def test_the_variable_turns_it_on(service: HttpService, built: Path, authorization: dict[str, str]) -> None:
    (built / "index.html").write_text("<!doctype html>")

    page = await (await function(service, ARCO_CONSOLE="true", **authorization)).get("/ui/index.html")
    without = await (await function(service, **authorization)).get("/ui/index.html")

    assert (page.status, page.body) == (200, b"<!doctype html>")
    assert without.status == 404


async def test_people_sign_in_at_the_issuers_that_it_trusts(service: HttpService, built: Path) -> None:
    (built / "index.html").write_text("<!doctype html>")
    issuer = "https://id.example.com"
    trusted = {"ARCO_AUTH": "oidc", "ARCO_OIDC_ISSUERS": issuer, "ARCO_OIDC_AUDIENCES": "lake"}
    named = {**trusted, "ARCO_STORE": "memory:", "ARCO_CONSOLE": "true", "ARCO_CONSOLE_CLIENTS": f"{issuer} console"}

    config = await (await function(service, **named)).get("/ui/config.json")

    assert config.json["issuers"] == [{"issuer": issuer, "client-id": "console", "scope": "openid"}]
    assert f"connect-src 'self' {issuer};" in config.headers["Content-Security-Policy"]
    with pytest.raises(ValueError, match=r"tokens of https://evil.example are not accepted"):
        await function(service, **{**named, "ARCO_CONSOLE_CLIENTS": "https://evil.example console"})


async def test_a_package_without_it_does_not_start(service: HttpService, built: Path) -> None:
    with pytest.raises(FileNotFoundError, match="ARCO_CONSOLE is set, and this package has no console"):
        await function(service, ARCO_CONSOLE="true")
