"""The console in Chromium, at a real server: what people do with it (console/browser/scenarios.test.mjs)."""

import asyncio
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.process import serving
from tests.console.lake import served_lake
from tools.support.environment import PROJECT

CONSOLE = PROJECT / "console"
FILE = "browser/scenarios.test.mjs"
SCENARIOS = re.findall(r'(?m)^test\("(.+?)"', (CONSOLE / FILE).read_text())
COLOURS = re.compile(r"\x1b\[\d+m")
"""What Playwright marks words by, which XML can't hold."""
SECONDS = 600
pytestmark = pytest.mark.needs(
    "chromium", "node", "console/node_modules/.complete", "arco_catalog/http/console/built/index.html"
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What went wrong in each scenario; empty text if nothing did."""
    return asyncio.run(_run(tmp_path_factory.mktemp("console")))


async def _run(folder: Path) -> Mapping[str, str]:
    async with served_lake(folder) as lake, serving("memory:") as plain:
        environment = {**os.environ, **lake.settings, "ARCO_PLAIN_URI": plain.uri}
        done = await asyncio.to_thread(
            subprocess.run,
            ["node", "--test", "--test-reporter=junit", FILE],
            cwd=CONSOLE,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    printed = COLOURS.sub("", done.stdout)
    try:
        cases = ElementTree.fromstring(printed).iter("testcase")
    except ElementTree.ParseError:
        raise AssertionError(printed + done.stderr) from None
    return {case.attrib["name"]: "".join(each.text or "" for each in case.iter("failure")) for case in cases}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_in_chromium(scenario: str, outcomes: Mapping[str, str]) -> None:
    assert outcomes[scenario] == ""
