"""Packs the jobs for `spark-submit`: `python -m reconciler.package FOLDER`, in an environment that has
`arco-catalog[pipeline]` (docs/pipeline.md#on-a-cluster).

It writes into the folder: the script for `spark-submit`, the project's packages, and an archive of the libraries with a
launcher for the Python of the cluster's workers. Spark is not packed: a cluster has its own.
"""

import argparse
import io
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from reconciler import job
from reconciler.packages import PACKAGES, pack

NAME = "arco-catalog"
EXTRAS = ("pipeline", "s3", "gcs", "azure")
"""The extras for jobs and for clouds. Their libraries are packed if they are installed."""
OF_THE_CLUSTER = frozenset({"pyspark", "py4j"})
ARCHIVE, CODE = "environment.tar.gz", "arco.zip"
LIBRARIES = "lib"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRAS = re.compile(r"\[([^]]*)]")
_OF_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def main(arguments: list[str] | None = None) -> int:
    """Packs the jobs into the folder that the first argument names, which is created if needed, and prints the command
    that submits them. Returns 0. Raises `SystemExit` for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m reconciler.package", description="Pack the jobs for spark-submit.")
    parser.add_argument("folder", type=Path, help="where to put job.py, arco.zip and environment.tar.gz")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.py").write_bytes(Path(job.__file__).read_bytes())
    pack(folder / CODE, [Path(path) for package in PACKAGES for path in package.__path__])
    found = [*needed(NAME, EXTRAS)]
    pack_libraries(folder / ARCHIVE, found)
    python = "environment/bin/python"
    sys.stdout.write(
        f"{len(found)} libraries for {version()} are packed. To submit a job to workers of this system and Python:\n\n"
        f"PYSPARK_PYTHON=./{python} spark-submit --archives {folder / ARCHIVE}#environment \\\n"
        f"  --conf spark.executorEnv.PYSPARK_PYTHON=./{python} --py-files {folder / CODE} {folder / 'job.py'} \\\n"
        "  compact --uri https://catalog.example.com --store s3://bucket/lake --warehouse main\n\n"
        "Submit reconcile, collect and fsck in the same way, without --uri; and maintain, for which Spark needs\n"
        "Iceberg (--packages or --jars before the script). In client mode the driver runs here: unpack the archive\n"
        "as `environment` first.\n"
    )
    return 0


def version() -> str:
    """Returns the name of this Python with its minor version, such as python3.11, for which libraries are packed."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def needed(name: str, extras: Iterable[str]) -> Iterator[Distribution]:
    """Iterates once over every installed library that the distribution `name` with these extras requires, directly or
    not. The distribution itself, the libraries `OF_THE_CLUSTER` with what only they require, and libraries that are not
    installed are left out."""
    visited: set[tuple[str, frozenset[str]]] = set()
    yielded: set[str] = set()
    queue = [(name, frozenset(extras))]
    while queue:
        required = queue.pop()
        if required in visited or required[0] in OF_THE_CLUSTER:
            continue
        visited.add(required)
        try:
            found = distribution(required[0])
        except PackageNotFoundError:
            continue  # required on another system, or by the extra of a cloud that is not installed
        if required[0] not in {name, *yielded}:
            yielded.add(required[0])
            yield found
        queue += _requirements(found, required[1])


def _requirements(library: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Iterates over the name and the extras of each requirement that an installed library has by itself or by its
    `extras`, also if the requirement is only for another system or version of Python."""
    for line in library.requires or ():
        requirement, _, marker = line.partition(";")
        only_for = set(_OF_EXTRA.findall(marker))
        if only_for and not only_for & extras:
            continue
        name, more = _NAME.match(requirement), _EXTRAS.search(requirement)
        if name is not None:
            listed = more[1].split(",") if more is not None else []
            yield _normal(name[0]), frozenset(each.strip() for each in listed)


def _normal(name: str) -> str:
    """Returns a library's name in lower case, with one hyphen for every run of `-`, `_` and `.`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pack_libraries(archive: Path, found: Iterable[Distribution]) -> None:
    """Writes a gzipped tar archive with the files of these libraries, without byte code and scripts, and with
    `bin/python`: a launcher that starts the worker's own Python with them on the path."""
    with tarfile.open(archive, "w:gz", compresslevel=6) as packed:
        for library in found:
            for file in library.files or ():
                if ".." not in file.parts and "__pycache__" not in file.parts:
                    packed.add(str(library.locate_file(file)), f"{LIBRARIES}/{file.as_posix()}", recursive=False)
        launcher = (
            "#!/bin/sh\n"
            'here=$(cd "$(dirname "$0")/.." && pwd)\n'
            f'PYTHONPATH="$here/{LIBRARIES}${{PYTHONPATH:+:$PYTHONPATH}}" exec {version()} "$@"\n'
        ).encode()
        entry = tarfile.TarInfo("bin/python")
        entry.size, entry.mode = len(launcher), 0o755
        packed.addfile(entry, io.BytesIO(launcher))


if __name__ == "__main__":
    sys.exit(main())
