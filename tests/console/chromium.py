"""Plays scenarios of the console in Chromium: files of tests in JavaScript (console/browser)."""

import asyncio
import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from shutil import which
from typing import Protocol
from xml.etree import ElementTree

import pytest

from tests.cli.process import serving
from tools.support.environment import PROJECT

CONSOLE = PROJECT / "console"
BUILT = "arco_catalog/http/console/built/index.html"
needs_chromium = pytest.mark.needs("chromium", "node", "console/node_modules/.complete", BUILT)
COLOURS = re.compile(r"\x1b\[\d+m")
"""What Playwright marks words by, which XML can't hold."""
SECONDS = 600


def scenarios_in(file: str) -> list[str]:
    """The names of the scenarios in a file."""
    return re.findall(r'(?m)^test\("(.+?)"', (CONSOLE / "browser" / file).read_text())


class ServedSettings(Protocol):
    """What a file of scenarios is played at."""

    @property
    def settings(self) -> Mapping[str, str]: ...


def play_at(served: AbstractAsyncContextManager[ServedSettings], file: str) -> Mapping[str, str]:
    """Plays the scenarios of a file at what is served, as `play` does."""

    async def serve() -> Mapping[str, str]:
        async with served as lake:
            return await play(file, lake.settings)

    return asyncio.run(serve())


async def play(file: str, settings: Mapping[str, str]) -> Mapping[str, str]:
    """Plays the scenarios of a file at the server that the settings name, and at one without logins. Returns what went
    wrong in each, an empty text if nothing did."""
    async with serving("memory:") as plain:
        environment = {
            **os.environ,
            **settings,
            "ARCO_PLAIN_URI": plain.uri,
            "CHROMIUM": which("chromium") or "",
        }
        done = await asyncio.to_thread(
            subprocess.run,
            ["node", "--test", "--test-reporter=junit", f"browser/{file}"],
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
