"""Builds the zip that the function app on Azure is deployed from: `python -m tools.package_azure
[--console] [OUTPUT]`. With `--console` it has the built pages for browsers.

The platform wants `function_app.py` and `host.json` at its root, and dependencies where its worker looks for them. The
same sources and the same lock file give the same bytes.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.package import (
    CONSOLE_SUFFIX,
    NOT_SHIPPED,
    PROJECT,
    Platform,
    console_files,
    dependencies,
    megabytes,
    modules,
    write_zip,
)

OUTPUT = PROJECT / "dist" / "arco-catalog-functions.zip"
OUTPUT_CONSOLE = OUTPUT.with_stem(f"{OUTPUT.stem}{CONSOLE_SUFFIX}")
LOCK = PROJECT / "requirements" / "functions.txt"
ROOT = PROJECT / "azure_functions"
SOURCES = ("arco_catalog", "storage_backends")
LIBRARIES = ".python_packages/lib/site-packages"
PLATFORMS = (Platform("3.12", "x86_64-manylinux_2_28"),)  # what Flex Consumption runs


def main() -> int:
    """Build the zip, and print its size."""
    parser = argparse.ArgumentParser(prog="package_azure", description=__doc__)
    parser.add_argument("--console", action="store_true", help="with the console, which `make console` builds")
    default = OUTPUT.relative_to(PROJECT)
    parser.add_argument("output", nargs="?", type=Path, help=f"default {default}, with --console {OUTPUT_CONSOLE.name}")
    options = parser.parse_args()
    output: Path = options.output or (OUTPUT_CONSOLE if options.console else OUTPUT)
    unzipped = build(output, console=options.console)
    sys.stdout.write(f"{output}: {megabytes(output.stat().st_size)} zipped, {megabytes(unzipped)} unzipped\n")
    return 0


def build(output: Path, *, console: bool = False) -> int:
    """Writes the zip, and nothing if something fails. Returns its size unzipped, in bytes. Raises `FileNotFoundError`
    if it is to have the console and that is not built."""
    pages = console_files() if console else {}
    with tempfile.TemporaryDirectory(prefix="arco-package-") as scratch:
        installed = dependencies(Path(scratch), PLATFORMS, LOCK)
    files = {f"{LIBRARIES}/{name}": body for name, body in installed.items()}
    files |= {**dict(modules(SOURCES, NOT_SHIPPED)), **dict(_root()), **pages}
    write_zip(output, files)
    return sum(map(len, files.values()))


def _root() -> Iterator[tuple[str, bytes]]:
    for file in sorted(ROOT.iterdir()):
        if file.is_file():
            yield file.name, file.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
