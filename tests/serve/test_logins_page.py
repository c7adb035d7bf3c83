"""The four lines of docs/realms.md that make a catalog with logins, run in an empty folder."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

from tests.cli.process import TIMEOUT_SECONDS
from tests.support.served_realms import Root

PAGE = (Path(__file__).parents[2] / "docs/realms.md").read_text()


async def test_four_lines_make_a_catalog_with_logins(tmp_path: Path) -> None:
    [block] = [found for found in re.findall(r"```sh[^\n]*\n(.*?)```", PAGE, re.DOTALL) if "arco bootstrap" in found]
    lines = block.strip().splitlines()
    assert len(lines) == 4
    script = "set -e\n" + "\n".join(lines).replace("s3://bucket/lake", f"file:{tmp_path}/lake").replace(
        "\narco serve", "\nexec arco serve"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ARCO_")}
    path = f"{Path(sys.executable).parent}:{clean['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", script), cwd=tmp_path, stdout=PIPE, env={**clean, "PATH": path, "ARCO_PORT": "0"}
    )
    try:
        printed: dict[str, str] = {}
        assert process.stdout is not None
        async with asyncio.timeout(2 * TIMEOUT_SECONDS):
            while "uri" not in printed:
                line = (await process.stdout.readline()).decode()
                assert line, printed
                for name, pattern in {
                    "id": r"client id +(\w+)",
                    "secret": r"secret +(\w+)",
                    "uri": r" at (\S+) ",
                }.items():
                    if found := re.search(pattern, line):
                        printed[name] = found[1]

        def work() -> list[int]:
            catalog = Root(None, printed["id"], printed["secret"]).catalog(printed["uri"])
            catalog.create_namespace("db")
            catalog.create_table("db.t", pa.schema([("x", pa.int64())])).append(pa.table({"x": [1]}))
            rows: list[int] = catalog.load_table("db.t").scan().to_arrow()["x"].to_pylist()
            return rows

        assert await asyncio.to_thread(work) == [1]
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await process.communicate()
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
