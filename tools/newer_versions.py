"""Shows which engines and servers have newer releases than those that the tests run: `python -m tools.newer_versions`.

The versions that are tested are read from `requirements`, `fetch.mk` and the programs of the tests. The newest releases
come from the package indexes that pip, Maven, Go, npm and Cargo are configured for, by their own commands.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.support.environment import PROJECT

CALL_S = 120.0
AT_ONCE = 4
REQUIREMENTS = PROJECT / "requirements"
ENGINES = ("engines", "engines-dagster", "engines-dbt", "engines-flink", "polaris", "trino")
"""The lists of Python packages that are engines or their clients, of which the `.in` names those that are meant."""
OF_DEVELOPMENT = ("pyiceberg", "pyspark", "trino")
"""Packages of requirements/dev.txt that are engines or clients, too."""
JARS = {
    "io.openlineage:openlineage-spark_2.13": ("fetch.mk", r"(?m)^OPENLINEAGE := (\S+)$"),
    "io.trino:trino-main": ("tools/trinoserver/pom.xml", r"<trino.version>([^<]+)<"),
    "io.trino:trino-server-core": ("fetch.mk", r"(?m)^TRINO := \.jars/trino-([\d.]+)/"),
    "org.apache.iceberg:iceberg-flink-runtime-2.1": ("fetch.mk", r"(?m)^ICEBERG := (\S+)$"),
    "org.apache.iceberg:iceberg-kafka-connect": ("tools/kafkaconnect/pom.xml", r"<iceberg.version>([^<]+)<"),
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13": ("fetch.mk", r"(?m)^RETRYING := \S+_2\.13-([\d.]+)\.jar$"),
    "org.apache.kafka:kafka_2.13": ("tools/kafkaconnect/pom.xml", r"<kafka.version>([^<]+)<"),
    "org.keycloak:keycloak-quarkus-dist": ("fetch.mk", r"(?m)^KEYCLOAK := (\S+)$"),
}
"""By Maven's coordinates, the file and the pattern that have the newest version that is tested."""
GO_MODULE = PROJECT / "tests" / "engines" / "others" / "iceberg_go" / "go.mod"
CRATES = PROJECT / "tests" / "engines" / "others" / "iceberg_rust" / "Cargo.toml"

Command = Callable[[list[str]], str]
"""Runs a command and returns what it prints."""


@dataclass(frozen=True, order=True)
class Pin:
    """A package of an index, and the version that is tested."""

    index: str
    name: str
    version: str


def pins() -> list[Pin]:
    """Every engine and server that tests run, sorted."""
    return sorted({*_python(), *_maven(), *_go(), *_npm(), *_cargo()})


def _python() -> Iterator[Pin]:
    for listed in ENGINES:
        names = re.findall(r"(?m)^([\w.-]+)", (REQUIREMENTS / f"{listed}.in").read_text())
        yield from (Pin("PyPI", name, _locked(listed, name)) for name in names)
    yield from (Pin("PyPI", name, _locked("dev", name)) for name in OF_DEVELOPMENT)


def _locked(listed: str, name: str) -> str:
    """The version of a package in a lock file."""
    text = (REQUIREMENTS / f"{listed}.txt").read_text()
    found: list[str] = re.findall(rf"(?m)^{re.escape(name)}(?:\[[^]]*\])?==(\S+)", text)
    [version] = found
    return version


def _maven() -> Iterator[Pin]:
    for name, (file, pattern) in JARS.items():
        [version] = re.findall(pattern, (PROJECT / file).read_text())
        yield Pin("Maven", name, version)


def _go() -> Iterator[Pin]:
    text = (REQUIREMENTS / "go.txt").read_text() + GO_MODULE.read_text()
    for module, version in re.findall(r"(?m)^(?:\S+ |require |\t)(\S+?)[@ ](v\S+)(?! // indirect)(?: \S+)?$", text):
        yield Pin("Go", module.partition("/cmd")[0], version)


def _npm() -> Iterator[Pin]:
    for package in REQUIREMENTS.glob("*/package.json"):
        for name, version in json.loads(package.read_text())["dependencies"].items():
            yield Pin("npm", name, version)


def _cargo() -> Iterator[Pin]:
    for name, version in re.findall(r'(?m)^([\w-]+) = .*"=([\d.]+)"', CRATES.read_text()):
        yield Pin("crates.io", name, version)


def newest(pin: Pin, run: Command) -> str:
    """The newest release of a package. Raises `LookupError` if the answer has none."""
    match pin.index:
        case "PyPI":
            found = re.search(r"^\S+ \((\S+)\)", run(["pip", "index", "versions", pin.name]))
        case "Maven":
            artifact = re.escape(pin.name.partition(":")[2])
            found = re.search(rf"^{artifact}-(.+)\.pom$", _maven_release(pin.name, run))
        case "Go":
            found = re.search(r"^\S+ (v\S+)$", run(["go", "list", "-m", f"{pin.name}@latest"]), re.MULTILINE)
        case "npm":
            found = re.search(r"^(\d\S*)$", run(["npm", "view", pin.name, "version"]), re.MULTILINE)
        case _:
            found = re.search(r"(?m)^version: (\S+)", run(["cargo", "info", "--quiet", "--color=never", pin.name]))
    if found is None:
        raise LookupError(f"{pin.index} names no release of {pin.name}")
    return found[1]


def _maven_release(name: str, run: Command) -> str:
    """The name of the file that Maven takes for the newest release."""
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
    with tempfile.TemporaryDirectory() as folder:
        run(["mvn", "--batch-mode", "--quiet", plugin, f"-Dartifact={name}:RELEASE:pom", f"-DoutputDirectory={folder}"])
        return " ".join(file.name for file in Path(folder).iterdir())


def called(command: list[str]) -> str:
    """What a command prints. Raises `LookupError` if it fails, or is not there."""
    program = [str(PROJECT / ".venv" / "bin" / "pip"), *command[1:]] if command[0] == "pip" else command
    try:
        done = subprocess.run(
            program, cwd=PROJECT / "tests", capture_output=True, text=True, timeout=CALL_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LookupError(f"{' '.join(command)}: {error}") from error
    return done.stdout


def compared(pin: Pin, run: Command) -> str:
    """A line about a package: what is tested, and what is the newest, if it is another one."""
    try:
        latest = newest(pin, run)
    except LookupError as error:
        latest = f"unknown: {error}"
    state = "" if latest == pin.version else latest
    return f"{pin.index:<10} {pin.name:<55} {pin.version:<12} {state}".rstrip()


def main() -> None:
    """Writes a line for each package."""
    sys.stdout.write(f"{'index':<10} {'package':<55} {'tested':<12} newer\n")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in pool.map(lambda pin: compared(pin, called), pins()):
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
