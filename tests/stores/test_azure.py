"""Killed servers over Azurite."""

from pathlib import Path

import pytest

from tests.serve.test_sigkill import survive
from tools.support.emulators import store_server

pytestmark = pytest.mark.needs("node", "npm")


async def test_no_answer_is_a_lie_when_servers_over_azure_are_killed(tmp_path: Path) -> None:
    with store_server("az://lake/catalog"):
        await survive("az://lake/catalog", tmp_path, writers=6, kills=3, seed=6, takeovers=0)
