"""Takes a picture of each page of the console into a folder: `python -m tests.console.screenshots [FOLDER]`. Without a
folder, those that docs/console.md shows are taken anew."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cli.process import serving
from tests.console.lake import served_lake
from tools.support.environment import PROJECT

DOCS = PROJECT / "docs" / "console"


async def take(folder: Path) -> None:
    """Writes a picture of each page into a folder."""
    with tempfile.TemporaryDirectory(prefix="arco-lake-") as scratch:
        async with served_lake(Path(scratch)) as lake, serving("memory:") as plain:
            environment = {**os.environ, **lake.settings, "ARCO_PLAIN_URI": plain.uri}
            command = ["node", "browser/screenshots.mjs", str(folder)]
            await asyncio.to_thread(subprocess.run, command, cwd=PROJECT / "console", env=environment, check=True)


def main() -> None:
    if len(sys.argv) > 1:
        asyncio.run(take(Path(sys.argv[1]).resolve()))
        return
    with tempfile.TemporaryDirectory(prefix="arco-pictures-") as scratch:
        asyncio.run(take(Path(scratch)))
        for picture in DOCS.glob("*.webp"):
            shutil.copy(Path(scratch) / picture.name, picture)


if __name__ == "__main__":
    main()
