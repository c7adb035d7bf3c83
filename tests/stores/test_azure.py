"""Killed servers over Azurite."""

from pathlib import Path

import pytest

from storage_backends.azure.config import DEVELOPMENT_ACCOUNT
from tests.serve.test_sigkill import survive
from tools.support.emulators import store_server

STORE = f"abfss://lake@{DEVELOPMENT_ACCOUNT}.dfs.core.windows.net/catalog"

pytestmark = [pytest.mark.needs("node", "npm"), pytest.mark.slow]


async def test_no_answer_is_a_lie_when_servers_over_azure_are_killed(tmp_path: Path) -> None:
    with store_server(STORE):
        await survive(STORE, tmp_path, writers=6, kills=3, seed=6, takeovers=0)
