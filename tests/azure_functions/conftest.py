"""The deployed function app, called in this process with the platform's own library, over Azurite."""

import base64
import importlib
import itertools
import json
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import azure.functions as func
import pytest
from azure.functions.decorators.function_app import Function

from arco_catalog.iceberg.json import JsonValue, dumps
from tests.support import loggers
from tools.support.asgi_client import Answer
from tools.support.azurite import AzuriteServer

WAREHOUSE = "wh"
OBJECT_ID = "11111111-2222-3333-4444-555555555555"
PRINCIPAL = "X-MS-CLIENT-PRINCIPAL"
_MODULE = "azure_functions.function_app"
_numbers = itertools.count(1)


def principal(**claims: str) -> str:
    """The header by which App Service passes on a token's claims."""
    listed = [{"typ": name, "val": value} for name, value in claims.items()]
    return base64.b64encode(json.dumps({"auth_typ": "aad", "claims": listed}).encode()).decode()


@dataclass(frozen=True)
class FunctionApp:
    """The function app as the platform knows it: the functions that its module declares."""

    module: ModuleType
    functions: Mapping[str, Function]

    async def call(self, name: str, trigger: object) -> Any:
        """What a function returns for what has triggered it."""
        return await self.functions[name].get_user_function()(trigger)

    async def get(self, target: str, headers: Mapping[str, str] | None = None) -> Answer:
        return await self.send("GET", target, headers=headers)

    async def post(self, target: str, body: object) -> Answer:
        """Sends any value that is JSON."""
        typed = {"content-type": "application/json"}
        return await self.send("POST", target, dumps(cast(JsonValue, body)), typed)

    async def send(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Sends a request as the platform passes it on: the URL is decoded, the target as it was sent is in a header.
        A header that is given empty is left out."""
        passed_on = {
            "X-Waws-Unencoded-Url": target,
            PRINCIPAL: principal(oid=OBJECT_ID),
            "content-length": str(len(body)),
            **(headers or {}),
        }
        kept = {name: value for name, value in passed_on.items() if value}
        request = func.HttpRequest(method, "https://lake.example/v1/decoded", headers=kept, body=body)
        response: func.HttpResponse = await self.call("api", request)
        return Answer(response.status_code, dict(response.headers), response.get_body())


@pytest.fixture
def environment(azurite_server: AzuriteServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables of a function app with a container of its own."""
    container = f"functions-{next(_numbers)}"
    azurite_server.make_container(container)
    variables = {
        **azurite_server.environment,
        "ARCO_STORE": f"az://{container}/lake",
        "ARCO_WAREHOUSE": WAREHOUSE,
        "ARCO_ENDPOINT": "easy-auth",
        "ARCO_SKIP_PROBE": "true",
        "ARCO_LOG_LEVEL": "info",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


@pytest.fixture
async def app(environment: dict[str, str]) -> AsyncIterator[FunctionApp]:
    """The function app, imported anew as by a cold start."""
    with loggers.restored():
        sys.modules.pop(_MODULE, None)
        module = importlib.import_module(_MODULE)
        declared = {function.get_function_name(): function for function in module.app.get_functions()}
        yield FunctionApp(module, declared)
        if module._catalog is not None:
            await module._catalog.close()
        del sys.modules[_MODULE]


@pytest.fixture
def without_authentication(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint without authentication. A test must request it before `app`."""
    monkeypatch.setenv("ARCO_ENDPOINT", "unauthenticated")
