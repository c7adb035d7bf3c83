"""The project's packages, on their way to executors: whatever path the driver found them on, executors have their own.

They travel with the job as an archive, unless they came as one (`--py-files`), which Spark passes on by itself.
"""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkContext

import arco_catalog
import reconciler
import storage_backends

PACKAGES = (arco_catalog, storage_backends, reconciler)


@contextmanager
def shipped(spark: SparkContext) -> Iterator[None]:
    """Has executors import the packages that this process imported."""
    folders = [Path(folder) for package in PACKAGES for folder in package.__path__]
    if not all(folder.is_dir() for folder in folders):
        yield
        return
    with TemporaryDirectory(prefix="arco-packages-") as scratch:
        archive = Path(scratch, "arco-packages.zip")
        pack(archive, folders)
        spark.addPyFile(str(archive))
        yield


def pack(archive: Path, folders: list[Path]) -> None:
    """Writes the modules of packages into an archive."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for folder in folders:
            for module in sorted(folder.rglob("*.py")):
                packed.write(module, module.relative_to(folder.parent))
