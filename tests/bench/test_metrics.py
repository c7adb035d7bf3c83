"""The bench of what a request pays to be counted measures each way to count."""

import asyncio
import re
import sys

from tests.cli.process import finished


async def test_each_way_to_count_is_measured() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.bench.metrics", "--requests", "3"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    ended = await finished(process)

    assert (ended.code, ended.err) == (0, "")
    rows = re.findall(r"(?m)^(.{20}) *([\d.]+) µs a load *([+-][\d.]+) µs$", ended.out)
    assert [row[0].strip() for row in rows] == [
        "without metrics",
        "as lines in JSON",
        "counted in memory",
        "counted in files",
    ]
    assert float(rows[0][2]) == 0
    assert all(float(row[1]) > 0 for row in rows)
