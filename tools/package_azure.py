"""Builds the zip that the function app on Azure is deployed from: `python -m tools.package_azure [OUTPUT]`.

The platform wants `function_app.py` and `host.json` at its root, and dependencies where its worker looks for them. The
same sources and the same lock file give the same bytes.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.package import NOT_SHIPPED, PROJECT, Platform, dependencies, megabytes, modules, write_zip

OUTPUT = PROJECT / "dist" / "arco-catalog-functions.zip"
LOCK = PROJECT / "requirements" / "functions.txt"
ROOT = PROJECT / "azure_functions"
SOURCES = ("arco_catalog", "storage_backends")
LIBRARIES = ".python_packages/lib/site-packages"
PLATFORMS = (Platform("3.12", "x86_64-manylinux_2_28"),)  # what Flex Consumption runs


def main() -> int:
    """Build the zip, and print its size."""
    parser = argparse.ArgumentParser(prog="package_azure", description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=OUTPUT, help=f"default {OUTPUT.relative_to(PROJECT)}")
    output: Path = parser.parse_args().output
    unzipped = build(output)
    sys.stdout.write(f"{output}: {megabytes(output.stat().st_size)} zipped, {megabytes(unzipped)} unzipped\n")
    return 0


def build(output: Path) -> int:
    """Writes the zip, and nothing if something fails. Returns its size unzipped, in bytes."""
    with tempfile.TemporaryDirectory(prefix="arco-package-") as scratch:
        installed = dependencies(Path(scratch), PLATFORMS, LOCK)
    files = {f"{LIBRARIES}/{name}": body for name, body in installed.items()}
    files |= {**dict(modules(SOURCES, NOT_SHIPPED)), **dict(_root())}
    write_zip(output, files)
    return sum(map(len, files.values()))


def _root() -> Iterator[tuple[str, bytes]]:
    for file in sorted(ROOT.iterdir()):
        if file.is_file():
            yield file.name, file.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
