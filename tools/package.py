"""Builds the zip that every function is deployed from: `python -m tools.package [--oidc | --sdk] [--console] [OUTPUT]`.
With `--oidc` it has what verifies tokens of other issuers, with `--sdk` Amazon's SDK beside the catalog's own S3
client, with `--console` the built pages for browsers.

One zip for all functions and platforms: handlers, the catalog, and what they import, with the compiled modules of each
platform and the bytecode of each Python side by side (their names tell them apart). The same sources, the same lock
file and the same Pythons give the same bytes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath

from tools.bytecode import compile_ahead, interpreter

PROJECT = Path(__file__).resolve().parents[1]
LOCKS = PROJECT / "requirements"
SOURCES = ("arco_catalog", "storage_backends", "lambda")
NOT_SHIPPED = (
    "arco_catalog/cli",
    "arco_catalog/http/delegation_service",
    "arco_catalog/prove",
    "arco_catalog/upkeep/fsck",
    "arco_catalog/upkeep/recovery",
    "storage_backends/conformance",
)
"""The rooms that only commands need: no function has them."""
MODULES_NOT_SHIPPED = frozenset(
    f"arco_catalog/upkeep/{name}.py"
    for name in ("comparing", "delivery/kafka", "delivery/subscriptions", "importing", "rehearsal", "source_tables")
)
"""The modules of other rooms that only servers and commands need."""
CONSOLE = "arco_catalog/http/console/built"
CONSOLE_SUFFIX = "-console"

_ABOUT_THE_INSTALLATION = ("RECORD", "INSTALLER", "REQUESTED", "WHEEL", "direct_url.json", "uv_cache.json")
_FOR_COMPILERS = (".pyx", ".pxd", ".pyi", ".c", ".h", ".typed", ".pyc")
_EVERY_PYTHON = ".abi3.so"
_FOR_BUILDS = frozenset({"pycparser"})
"""Dependencies that are needed only where C declarations are compiled: `cryptography` comes with its own compiled."""
_MODELS = PurePosixPath("botocore/data")
_MODELS_SHIPPED = frozenset({"s3", "sts"})  # of hundreds of services: buckets, and roles by web identity
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LEVEL = 6
"""Of zlib: 9 makes the zip one percent smaller, in six times the time."""
_MODE = 0o100644 << 16
_UNIX = 3


@dataclass(frozen=True)
class Platform:
    """A platform that the zip is for: a version of Python on an architecture, as uv calls them."""

    python: str
    machine: str

    @property
    def tag(self) -> str:
        """As names of compiled modules have it."""
        return f"{self.python.replace('.', '')}-{self.machine.partition('-')[0]}-linux-gnu"


class Variant(Enum):
    """The variants of the zip, by what each has besides the common content; the value ends the name of the zip, and
    that of its lock file."""

    USUAL = ""
    OIDC = "-oidc"
    SDK = "-sdk"

    def output(self, *, console: bool = False) -> Path:
        return PROJECT / "dist" / f"arco-catalog-lambda{self.value}{CONSOLE_SUFFIX if console else ''}.zip"

    @property
    def lock(self) -> Path:
        return LOCKS / f"lambda{self.value}.txt"


PLATFORMS = (
    Platform("3.13", "aarch64-manylinux_2_28"),  # what is deployed
    Platform("3.13", "x86_64-manylinux_2_28"),
    Platform("3.11", "x86_64-manylinux_2_28"),  # what tests run
)
PYTHONS = tuple(sorted({platform.python for platform in PLATFORMS}))


def main() -> int:
    """Build the zip, and print its size."""
    parser = argparse.ArgumentParser(prog="package", description=__doc__)
    chosen = parser.add_mutually_exclusive_group()
    chosen.set_defaults(variant=Variant.USUAL)
    for name, variant, what in (
        ("--oidc", Variant.OIDC, "with what verifies tokens of other issuers (ARCO_AUTH=oidc)"),
        ("--sdk", Variant.SDK, "with Amazon's SDK"),
    ):
        chosen.add_argument(name, dest="variant", action="store_const", const=variant, help=what)
    parser.add_argument("--console", action="store_true", help="with the console, which `make console` builds")
    names = ", ".join(str(variant.output().relative_to(PROJECT)) for variant in Variant)
    parser.add_argument("output", nargs="?", type=Path, help=f"default {names}; with --console ending in -console.zip")
    options = parser.parse_args()
    output: Path = options.output or options.variant.output(console=options.console)
    unzipped = build(output, options.variant, console=options.console)
    sys.stdout.write(f"{output}: {megabytes(output.stat().st_size)} zipped, {megabytes(unzipped)} unzipped\n")
    for version in PYTHONS:
        if interpreter(version) is None:
            sys.stderr.write(f"no python{version} on the path: no bytecode for it, and with it slow cold starts\n")
    return 0


def build(output: Path, variant: Variant = Variant.USUAL, *, console: bool = False) -> int:
    """Writes the zip, and nothing if something fails. Returns its size unzipped, in bytes. Raises `FileNotFoundError`
    if it is to have the console and that is not built."""
    pages = console_files() if console else {}
    with tempfile.TemporaryDirectory(prefix="arco-package-") as scratch:
        files = {**dependencies(Path(scratch), PLATFORMS, variant.lock), **dict(modules(SOURCES, NOT_SHIPPED))}
        files |= {**pages, **_bytecode(files, Path(scratch, "compiled"))}
    write_zip(output, files)
    return sum(map(len, files.values()))


def console_files() -> Mapping[str, bytes]:
    """The built files of the console, by their place in the zip. Raises `FileNotFoundError` if it is not built."""
    built = PROJECT / CONSOLE
    if not (built / "index.html").is_file():
        raise FileNotFoundError(f"there is no console in {built}: `make console` builds it")
    return {f"{CONSOLE}/{file.name}": file.read_bytes() for file in sorted(built.iterdir())}


def write_zip(output: Path, files: Mapping[str, bytes]) -> None:
    """Writes the files under their names: the same bytes each time, and nothing if something fails."""
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(f"{output.name}.{os.getpid()}")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for name, body in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system, entry.external_attr = _UNIX, _MODE
            archive.writestr(entry, body, zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
    unfinished.replace(output)


def modules(folders: Iterable[str], left_out: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Our modules and the files that they read, by their place in the zip."""
    beneath = tuple(f"{folder}/" for folder in left_out)
    for folder in folders:
        for file in sorted((PROJECT / folder).rglob("*")):
            name = file.relative_to(PROJECT).as_posix()
            if file.suffix in (".py", ".json") and not name.startswith(beneath) and name not in MODULES_NOT_SHIPPED:
                yield name, file.read_bytes()


def dependencies(scratch: Path, platforms: Sequence[Platform], lock: Path) -> Mapping[str, bytes]:
    """What a lock file pins, for all platforms at once. Raises `ValueError` if two of them need different bytes in
    one place, `subprocess.CalledProcessError` if something can't be fetched."""
    with ThreadPoolExecutor(len(platforms)) as threads:
        folders = list(threads.map(lambda platform: _install(platform, scratch, lock), platforms))
    files: dict[str, bytes] = {}
    for platform, folder in zip(platforms, folders, strict=True):
        for file in folder.rglob("*"):
            name = PurePosixPath(file.relative_to(folder).as_posix())
            if file.is_file() and _ships(name):
                body = file.read_bytes()
                if files.setdefault(_place(name, platform), body) != body:
                    raise ValueError(f"platforms differ in {name}")
    return files


def _place(name: PurePosixPath, platform: Platform) -> str:
    """The path of a dependency's file in the zip. The name of a compiled module for every Python (`.abi3.so`) does not
    have the machine, so it gets the name of a module for this Python and machine, which Python tries first."""
    module = name.name.removesuffix(_EVERY_PYTHON)
    if module == name.name:
        return str(name)
    return str(name.with_name(f"{module}.cpython-{platform.tag}.so"))


def _bytecode(files: Mapping[str, bytes], scratch: Path) -> Mapping[str, bytes]:
    """What the modules among the files compile to, for each Python that is here. Raises
    `subprocess.CalledProcessError` for what does not compile."""
    for name in files:
        if name.endswith(".py"):
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_bytes(files[name])
    for python in filter(None, map(interpreter, PYTHONS)):
        compile_ahead(scratch, python)
    return {file.relative_to(scratch).as_posix(): file.read_bytes() for file in scratch.rglob("*.pyc")}


def _install(platform: Platform, scratch: Path, lock: Path) -> Path:
    folder = scratch / f"{platform.python}-{platform.machine}"
    uv = Path(sys.executable).with_name("uv")
    command: list[str | Path] = [uv, "pip", "install", "--quiet", "--target", folder]
    chosen = ["--python-version", platform.python, "--python-platform", platform.machine, "--only-binary", ":all:"]
    pinned = ["--require-hashes", "--no-deps", "--no-compile-bytecode"]
    subprocess.run([*command, *chosen, *pinned, "--requirements", lock], check=True, timeout=300)
    return folder


def _ships(file: PurePosixPath) -> bool:
    """Whether a file of a dependency belongs into the zip. Metadata does, packages read their versions there; and so do
    licences, as they ask for."""
    if file.parts[0].partition("-")[0] in _FOR_BUILDS:
        return False
    if file.parts[0].endswith(".dist-info"):
        return file.name not in _ABOUT_THE_INSTALLATION and "sboms" not in file.parts
    if _MODELS in file.parents and len(file.parts) > 3 and file.parts[2] not in _MODELS_SHIPPED:
        return False
    return file.suffix not in _FOR_COMPILERS and file.name != ".lock" and not {"tests", "bin"} & {*file.parts}


def megabytes(size: int) -> str:
    """A size as it is printed."""
    return f"{size / 1e6:.2f} MB"


if __name__ == "__main__":
    sys.exit(main())
