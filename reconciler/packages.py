"""Sends the project's packages to executors, which do not have the driver's path.

The packages are sent as an archive, which is made from the driver's folders. If the driver itself has imported them
from an archive (`--py-files`), Spark has sent that already.
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
    """Makes the project's packages importable on Spark's executors, as long as this context is open. The archive in
    which they are sent is deleted on exit. Sends nothing if the driver itself has the packages from an archive, since
    Spark has sent that already."""
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
    """Writes the Python modules of package folders into a zip archive."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for folder in folders:
            for module in sorted(folder.rglob("*.py")):
                packed.write(module, module.relative_to(folder.parent))
