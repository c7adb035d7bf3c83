"""A function queries the Open Policy Agent that its variables name."""

import pytest

from arco_catalog.http.function_app import function_app, function_options
from arco_catalog.state.runtime import SystemRuntime
from tests.support.http_service import HttpService
from tests.support.policy_stub import PolicyStub
from tests.support.stub_server import stub_server
from tools.support.asgi_client import Client

OFF = {"ARCO_AUTHORIZATION": "off"}


@pytest.mark.parametrize("variables", [{}, OFF])
async def test_a_function_does_what_its_policy_allows(variables: dict[str, str]) -> None:
    stub = PolicyStub(lambda principal, action, kind, name: name != "secret")
    async with stub_server(stub.handle) as opa:
        environment = {**variables, "ARCO_OPA_URL": f"{opa.uri}/v1/data/arco/allow", "ARCO_OPA_CACHE": "0"}
        catalog = HttpService().catalog()
        app = await function_app(environment, catalog, function_options(environment), None, SystemRuntime())
        client = Client(app)

        assert (await client.post("/v1/wh/namespaces", {"namespace": ["open"]})).status == 200
        assert (await client.get("/v1/wh/namespaces/secret")).status == 403
        stub.silent = True
        assert (await client.get("/v1/wh/namespaces/open")).status == 503
