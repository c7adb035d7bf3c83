"""oidc-provider, an issuer of OpenID Connect tokens, which the Makefile installs with npm (`.tools/oidc-provider`).

It runs in a process of its own on 127.0.0.1, and ends with the context that started it.
"""

import asyncio
import json
import tempfile
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

from tools.support.environment import PROJECT
from tools.support.ports import free_port

LIBRARY = PROJECT / ".tools" / "oidc-provider" / "node_modules" / "oidc-provider" / "lib" / "index.js"
SCRIPT = PROJECT / "tests" / "support" / "oidc_provider.mjs"
ANSWER_S = 120.0


@dataclass(frozen=True)
class OidcProvider:
    """A running issuer, and the process that it is."""

    issuer: str
    process: asyncio.subprocess.Process

    async def change_keys(self, command: str) -> str:
        """Publishes a key (`publish RS256`), signs with the one published last (`sign`), withdraws all others
        (`withdraw`), or has a new one only (`replace ES256`). Returns the name of the key that signs."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n".encode())
        await self.process.stdin.drain()
        return await _line(self.process)

    async def token(self) -> str:
        """A new access token of its one client."""
        return await asyncio.to_thread(self._token)

    def _token(self) -> str:
        form = {"grant_type": "client_credentials", "client_id": "ada", "client_secret": "a-secret-of-this-test"}
        with urllib.request.urlopen(f"{self.issuer}/token", urlencode(form).encode(), timeout=ANSWER_S) as answer:
            return str(json.load(answer)["access_token"])


@asynccontextmanager
async def oidc_provider(audience: str, redirect_uri: str = "", *, cors: bool = True) -> AsyncIterator[OidcProvider]:
    """An issuer whose tokens are for one audience. With a `redirect_uri` it has the client `console` of pages there;
    without `cors` they may not read its answers. Raises `LookupError` if it is not installed."""
    if not LIBRARY.exists():
        raise LookupError(".tools/oidc-provider is not installed: run 'make .tools/oidc-provider', which needs npm")
    port = free_port()
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            "node",
            str(SCRIPT),
            str(LIBRARY),
            str(port),
            audience,
            redirect_uri,
            "cors" if cors else "",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
        try:
            if await _line(process) != "ready":
                errors.seek(0)
                raise RuntimeError(f"oidc-provider did not start: {errors.read().decode(errors='replace')}")
            yield OidcProvider(f"http://127.0.0.1:{port}", process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(ANSWER_S):
        return (await process.stdout.readline()).decode().strip()
