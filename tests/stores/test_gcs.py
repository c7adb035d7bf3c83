"""Killed servers over fake-gcs-server, whose conditions of uploads hold: commits need no others."""

from pathlib import Path

import pytest

from tests.serve.test_sigkill import survive
from tools.support.emulators import store_server

pytestmark = [pytest.mark.needs("go"), pytest.mark.slow]


async def test_no_answer_is_a_lie_when_servers_over_gcs_are_killed(tmp_path: Path) -> None:
    with store_server("gs://lake/catalog"):
        await survive("gs://lake/catalog", tmp_path, writers=6, kills=3, seed=5, takeovers=0)
