"""Iceberg's Java client at work in a JVM of its own: tools/javaclient/Commits.java."""

import asyncio
import atexit
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tools.demo.engines import PROJECT
from tools.demo.java import java_home
from tools.demo.server import WAREHOUSE
from tools.support.java_programs import class_path, compile_programs

RETRIES = "1.12.0"
"""A release that sends a request again, under its idempotency key, when the answer is lost."""
GIVES_UP = "1.11.0"
"""A release that sends keys, but no POST again."""
LIMIT_S = 240.0


async def work(version: str, uri: str, steps: Sequence[str], scratch: Path) -> dict[str, str]:
    """What became of each step: `done`, or the exception's class. Raises `TimeoutError`, and `RuntimeError` if the JVM
    fails."""
    classes = await asyncio.to_thread(_compiled, version)
    command = [str(java_home() / "bin" / "java"), "-Xmx512m", "-cp", f"{classes}:{class_path(version)}", "Commits"]
    said = await run([*command, uri, WAREHOUSE, *steps], scratch)
    return dict(line.split("\t") for line in said.splitlines())


@cache
def _compiled(version: str) -> Path:
    """The folder with the client's classes, which goes when this process does: compiled once, however often it runs."""
    folder = tempfile.mkdtemp(prefix="arco-java-")
    atexit.register(shutil.rmtree, folder)
    compile_programs(["Commits.java"], version, folder)
    return Path(folder)


async def run(command: Sequence[str], scratch: Path) -> str:
    """What a process prints. Its errors go to `scratch/stderr`."""
    with (scratch / "stderr").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=PROJECT, stdout=asyncio.subprocess.PIPE, stderr=errors
        )
        try:
            async with asyncio.timeout(LIMIT_S):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}, see {scratch / 'stderr'}")
    return said.decode()
