"""Builds all files of a release into a folder: `python -m tools.release [--set VERSION]`, which `make release` calls.

Wheel, source distribution, the zips for AWS Lambda and Azure Functions, the Helm chart, bills of materials, the section
of the changelog as notes, and SHA256SUMS over all of them. A checkout of one commit gives one set of bytes: times are
the commit's, and archives hold files in order. `--set` writes a new version where it stands, and builds nothing.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
OUTPUT = PROJECT / "dist" / "release"
CHART = Path("deploy/helm/arco-catalog")
VERSIONS = {
    Path("pyproject.toml"): r'(?m)^(version = ")(?P<version>[^"]+)(")$',
    CHART / "Chart.yaml": r'(?m)^((?:version: |appVersion: "))(?P<version>[0-9][^"\n]*)("?)$',
    Path("arco_catalog/http/openapi.json"): r'(?m)^("version": ")(?P<version>[^"]+)(",)$',
}
"""Where the version stands. pyproject.toml is its source; the other files follow it."""
SEMANTIC = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?")
MODE = 0o644


class ReleaseError(Exception):
    """The reason why a release was not built."""


def version() -> str:
    """The project's version."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def set_version(new: str, root: Path = PROJECT) -> None:
    """Writes a version to each file that has one. Raises `ReleaseError` for one that is not semantic."""
    if not SEMANTIC.fullmatch(new):
        raise ReleaseError(f"{new!r} is not a version: expected three numbers, as 0.2.0")
    for path, pattern in VERSIONS.items():
        text, count = re.subn(pattern, rf"\g<1>{new}\g<3>", (root / path).read_text())
        if count == 0:
            raise ReleaseError(f"{path} has no version")
        (root / path).write_text(text)


def disagreements(root: Path = PROJECT) -> dict[str, set[str]]:
    """The files whose version is not that of pyproject.toml."""
    found = {
        path.as_posix(): {match["version"] for match in re.finditer(pattern, (root / path).read_text())}
        for path, pattern in VERSIONS.items()
    }
    return {path: versions for path, versions in found.items() if versions != found["pyproject.toml"]}


def notes(changelog: str, released: str) -> str:
    """The section of a version in a changelog. Raises `ReleaseError` if it is missing, undated or empty."""
    match = re.search(rf"(?ms)^## \[{re.escape(released)}\](?P<date>[^\n]*)\n(?P<text>.*?)(?=^## \[|\Z)", changelog)
    if match is None:
        raise ReleaseError(f"CHANGELOG.md has no section [{released}]")
    if not re.fullmatch(r" - \d{4}-\d{2}-\d{2}", match["date"]):
        raise ReleaseError(
            f"CHANGELOG.md: the heading of [{released}] has no date, as in `## [{released}] - 2026-11-24`"
        )
    text = match["text"].strip()
    if not text:
        raise ReleaseError(f"CHANGELOG.md: the section [{released}] is empty")
    return f"{text}\n"


def commit_time(root: Path = PROJECT) -> int:
    """Seconds since 1970 at which the checked-out commit was made. Raises `ReleaseError` where files differ from it."""
    if _git(root, "status", "--porcelain"):
        raise ReleaseError("the checkout has changes that are not committed")
    return int(_git(root, "log", "-1", "--format=%ct"))


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def write_tar(output: Path, files: Iterable[tuple[str, bytes]], time: int) -> None:
    """A tar.gz of files in order of their names, of one owner and one time."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, body in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(body), time, MODE
            archive.addfile(entry, io.BytesIO(body))
    output.write_bytes(gzip.compress(packed.getvalue(), mtime=time))


def repack(archive: Path, time: int) -> None:
    """Writes a tar.gz anew, without the times and owners of the machine that made it."""
    with tarfile.open(archive) as opened:
        files = [(member.name, _body(opened, member)) for member in opened.getmembers() if member.isfile()]
    write_tar(archive, files, time)


def _body(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return b"" if file is None else file.read()


def pack_chart(output: Path, time: int) -> None:
    """The Helm chart, as `helm package` names and lays it out."""
    folder = PROJECT / CHART
    files = ((f"{CHART.name}/{path.relative_to(folder).as_posix()}", path.read_bytes()) for path in _files(folder))
    write_tar(output / f"{CHART.name}-{version()}.tgz", files, time)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def build_distributions(output: Path, time: int, root: Path = PROJECT) -> None:
    """Builds wheel and source distribution of a checkout."""
    uv = str(Path(sys.executable).with_name("uv"))
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [
                uv,
                "build",
                "--quiet",
                "--no-build-isolation",
                "--python",
                sys.executable,
                "--out-dir",
                scratch,
                str(root),
            ],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(time)},
            check=True,
        )
        for built in _files(Path(scratch)):
            if built.name.endswith(".tar.gz"):
                repack(built, time)
            if built.name.startswith("arco_catalog-"):
                shutil.copy(built, output)


def build_functions(output: Path) -> None:
    """Builds the zips, whose times are fixed."""
    for module, name in (("tools.package", "lambda"), ("tools.package_azure", "functions")):
        zipped = str(output / f"arco-catalog-{name}-{version()}.zip")
        subprocess.run([sys.executable, "-m", module, zipped], cwd=PROJECT, check=True)


def write_sums(output: Path) -> None:
    """SHA256SUMS, as `sha256sum --check` reads it."""
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(_files(output))]
    (output / "SHA256SUMS").write_text("".join(sums))


def release(output: Path) -> None:
    """Builds a release into an empty folder. Raises `ReleaseError` where something is missing."""
    if wrong := disagreements():
        raise ReleaseError(f"{', '.join(wrong)}: not version {version()}; `python -m tools.release --set {version()}`")
    text = notes((PROJECT / "CHANGELOG.md").read_text(), version())
    time = commit_time()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    (output / "notes.md").write_text(text)
    build_distributions(output, time)
    build_functions(output)
    pack_chart(output, time)
    for bill in (PROJECT / "dist").glob("sbom-*.json"):
        shutil.copy(bill, output)
    write_sums(output)


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds a release, or sets the version. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="release", description="Build all files of a release into dist/release.")
    parser.add_argument("--set", metavar="VERSION", help="write this version where it stands, and build nothing")
    parsed = parser.parse_args(arguments)
    try:
        if parsed.set:
            set_version(parsed.set)
            return 0
        release(OUTPUT)
    except ReleaseError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    sys.stdout.write((OUTPUT / "SHA256SUMS").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
