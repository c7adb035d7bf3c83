"""Vending as variables configure it."""

import pytest

from arco_catalog.state.locations import Location
from arco_catalog.vending.configured import configured_vending
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.storage_config import AwsStorage
from tests.support.fake_runtime import FakeRuntime
from tests.vending.fake_clouds import connections, fake_cloud, text
from tests.vending.test_sts import ROLE, answer

KEYS = {"AWS_ACCESS_KEY_ID": "AKOWN", "AWS_SECRET_ACCESS_KEY": "own-secret"}
SCOPE = Scope.of([Location.parse("s3://lake/t")], write=False)


@pytest.mark.parametrize(("lifetime", "told_s"), [({}, 3_600), ({"ARCO_VENDING_LIFETIME": "60"}, 60)])
async def test_credentials_live_as_long_as_the_variable_says(lifetime: dict[str, str], told_s: int) -> None:
    runtime = FakeRuntime()
    async with fake_cloud(text(answer())) as sts, connections(runtime) as outbound:
        environment = {**KEYS, "ARCO_VENDING_ENDPOINTS": sts.uri, **lifetime}
        vending = configured_vending(environment, runtime, lambda _: None, outbound)
        config = AwsStorage(role_arn=ROLE, sts_endpoint=sts.uri)
        (credential,) = await vending.credentials(config, SCOPE, "e", "alice")

    assert credential.expires_ms == runtime.ms + told_s * 1_000


def test_a_lifetime_out_of_bounds_is_told_with_its_variable() -> None:
    with pytest.raises(ValueError, match="ARCO_VENDING_LIFETIME: expected a number of seconds from 60 to 43200"):
        configured_vending({"ARCO_VENDING_LIFETIME": "1"}, FakeRuntime(), lambda _: None)
