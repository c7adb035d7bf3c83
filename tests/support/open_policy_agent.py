"""Open Policy Agent itself, as a server with the policy that docs/opa.md shows."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tools.support.environment import PROJECT

PROGRAM = ".tools/opa"
START_SECONDS = 60.0


def documented_policy() -> str:
    """The policy on the page."""
    [policy] = re.findall(r"(?s)```rego\n(.*?)```", (PROJECT / "docs" / "opa.md").read_text())
    return str(policy)


@asynccontextmanager
async def open_policy_agent(folder: Path, policy: str | None = None) -> AsyncIterator[str]:
    """Runs OPA with a policy, by default that on the page, on a free port, and yields its URI."""
    file = folder / "policy.rego"
    file.write_text(documented_policy() if policy is None else policy)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [str(PROJECT / PROGRAM), "run", "--server", "--addr", address, "--disable-telemetry", str(file)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        await _until_ready(f"http://{address}")
        yield f"http://{address}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _until_ready(uri: str) -> None:
    async with asyncio.timeout(START_SECONDS), aiohttp.ClientSession() as client:
        while True:
            try:
                async with client.get(f"{uri}/health") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.1)
