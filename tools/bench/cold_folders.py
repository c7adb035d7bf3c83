"""Makes the functions that `tools.bench.cold` starts: the catalog's zip, and the functions to compare it with, each in
a folder of its own."""

import shutil
import sys
from collections.abc import Collection, Mapping
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from packaging.requirements import Requirement

from tools.bytecode import compile_ahead
from tools.gateway.running import API
from tools.gateway.sandbox import make_runtime_client
from tools.package import Variant, build

OURS, BARE, STOCK = "arco_catalog", "(a) starlette", "(b) starlette, aiobotocore"
OURS_BY_SDK = "arco_catalog, by Amazon's SDK"
ZIPS = {OURS: "ours", OURS_BY_SDK: "ours-by-sdk"}
NEEDS = {BARE: ("starlette", "mangum"), STOCK: ("starlette", "mangum", "aiobotocore")}
MODULES = {BARE: "bare", STOCK: "stock"}
HANDLERS = {**dict.fromkeys(ZIPS, API), **{name: f"{module}.handler" for name, module in MODULES.items()}}
_SOURCES = Path(__file__).with_name("cold_handlers")


def runtime_client(folder: Path) -> Path:
    """AWS's runtime client, compiled."""
    with TemporaryDirectory() as links:
        shutil.copytree(make_runtime_client(Path(links)), folder, ignore=shutil.ignore_patterns("__pycache__"))
    compile_ahead(folder, sys.executable)
    return folder


def functions(scratch: Path, *, compiled: bool, names: Collection[str] = (*ZIPS, *MODULES)) -> Mapping[str, Path]:
    """The folder of each of the functions, with the bytecode of all its modules or of none."""
    folders = {name: scratch / folder for name, folder in {**ZIPS, **MODULES}.items() if name in names}
    for name in folders.keys() & ZIPS.keys():
        build(scratch / "zip", Variant.SDK if name == OURS_BY_SDK else Variant.USUAL)
        with ZipFile(scratch / "zip") as archive:
            archive.extractall(folders[name])
    for name in folders.keys() & MODULES.keys():
        module, seen = MODULES[name], set[str]()
        for requirement in NEEDS[name]:
            _install(requirement, folders[name], seen)
        shutil.copyfile(_SOURCES / f"{module}.py", folders[name] / f"{module}.py")
    for folder in folders.values():
        for cache in [*folder.rglob("__pycache__")]:
            shutil.rmtree(cache)
        if compiled:
            compile_ahead(folder, sys.executable)
    return folders


def _install(requirement: str, folder: Path, seen: set[str]) -> None:
    """A distribution of this environment, and what it needs: what a zip of it would hold."""
    wanted = Requirement(requirement)
    if wanted.name in seen or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
        return
    seen.add(wanted.name)
    installed = distribution(wanted.name)
    for file in installed.files or ():
        if ".." not in file.parts and file.suffix != ".pyc":
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(installed.locate_file(file)), folder / file)
    for needed in installed.requires or ():
        _install(needed, folder, seen)
