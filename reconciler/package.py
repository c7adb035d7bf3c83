"""Packs the jobs for `spark-submit`: `python -m reconciler.package FOLDER`, in an environment that has
`arco-catalog[pipeline]` (docs/pipeline.md#on-a-cluster).

Into the folder go the script that `spark-submit` is given, the project's packages, and an archive of the libraries with
a launcher of the Python that workers have. Spark itself is left out: a cluster has its own.
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
"""What jobs need, and what clouds do: of these, what is installed is packed."""
OF_THE_CLUSTER = frozenset({"pyspark", "py4j"})
ARCHIVE, CODE = "environment.tar.gz", "arco.zip"
LIBRARIES = "lib"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRAS = re.compile(r"\[([^]]*)]")
_OF_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def main(arguments: list[str] | None = None) -> int:
    """Packs, and prints how the jobs are submitted."""
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
        f"{len(found)} libraries for {version()} are packed. On workers of the same system that have it:\n\n"
        f"PYSPARK_PYTHON=./{python} spark-submit --archives {folder / ARCHIVE}#environment \\\n"
        f"  --conf spark.executorEnv.PYSPARK_PYTHON=./{python} --py-files {folder / CODE} {folder / 'job.py'} \\\n"
        "  compact --uri https://catalog.example.com --store s3://bucket/lake --warehouse main\n\n"
        "So are reconcile, collect and fsck, without --uri, and maintain, for which Spark needs Iceberg (--packages\n"
        "or --jars before the script). In client mode the driver runs here: unpack the archive as `environment`\n"
        "first.\n"
    )
    return 0


def version() -> str:
    """The name of this Python's program, by its minor version: libraries are built for that."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def needed(name: str, extras: Iterable[str]) -> Iterator[Distribution]:
    """The installed libraries that a distribution needs with some of its extras, each once, without itself, and without
    what a cluster has."""
    begun: set[tuple[str, frozenset[str]]] = set()
    told: set[str] = set()
    waiting = [(name, frozenset(extras))]
    while waiting:
        wanted = waiting.pop()
        if wanted in begun or wanted[0] in OF_THE_CLUSTER:
            continue
        begun.add(wanted)
        try:
            found = distribution(wanted[0])
        except PackageNotFoundError:
            continue  # for another system, or of a cloud that was not asked for
        if wanted[0] not in {name, *told}:
            told.add(wanted[0])
            yield found
        waiting += _requirements(found, wanted[1])


def _requirements(of: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for said in of.requires or ():
        requirement, _, marker = said.partition(";")
        only_for = set(_OF_EXTRA.findall(marker))
        if only_for and not only_for & extras:
            continue
        name, more = _NAME.match(requirement), _EXTRAS.search(requirement)
        if name is not None:
            wanted = more[1].split(",") if more is not None else []
            yield _normal(name[0]), frozenset(each.strip() for each in wanted)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pack_libraries(archive: Path, found: Iterable[Distribution]) -> None:
    """Writes the files of libraries, and the launcher that has them on its path."""
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
