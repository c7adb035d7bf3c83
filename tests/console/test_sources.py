"""The sources of the console: their types, their lint, and tests of their logic."""

import subprocess

import pytest

from tools.support.environment import PROJECT

pytestmark = pytest.mark.needs("node", "npm", "console/node_modules/.complete")


@pytest.mark.parametrize("script", ["check", "test"])
def test_the_sources_pass(script: str) -> None:
    done = subprocess.run(
        ["npm", "run", "--silent", script],
        cwd=PROJECT / "console",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
