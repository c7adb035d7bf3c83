"""The zip below a path of its own, behind each kind of endpoint."""

from collections.abc import Callable

import pytest
from pyiceberg.catalog import load_catalog

from arco_catalog.http.lambda_adapter import Endpoint
from tests.lambda_.conftest import ONE_ENDPOINT, WAREHOUSE, Start

CONFIG = f"/v1/config?warehouse={WAREHOUSE}"


@pytest.mark.parametrize("endpoint", ONE_ENDPOINT)
def test_clients_reach_a_function_below_the_path_and_without_it(
    start: Start, deployed: Callable[[], dict[str, str]], endpoint: Endpoint
) -> None:
    with start({**deployed(), "ARCO_BASE_PATH": "/iceberg"}, endpoint) as caller:
        assert caller.get(CONFIG).status == 200
        assert caller.get(f"/iceberg{CONFIG}").status == 200
        assert caller.get(f"/elsewhere{CONFIG}").status == 404
        catalog = load_catalog("arco", type="rest", uri=f"{caller.uri}/iceberg", warehouse=WAREHOUSE)
        catalog.create_namespace("a b")
        catalog.create_namespace(("a b", "c"))
        assert catalog.list_namespaces("a b") == [("a b", "c")]
