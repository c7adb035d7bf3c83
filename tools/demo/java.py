"""Finds the JDK that runs Spark. Spark 4.1 runs on 17 and 21; a machine's default may be any other."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SUPPORTED = (17, 21)  # in this order
_INSTALLED = (
    (Path("/usr/lib/jvm"), "*"),
    (Path("/opt"), "*jdk*"),
    (Path("/Library/Java/JavaVirtualMachines"), "*/Contents/Home"),
    (Path.home() / ".sdkman/candidates/java", "*"),
)


def java_home(supported: Sequence[int] = SUPPORTED, program: str = "Spark") -> Path:
    """The home of an installed JDK of one of these versions, the first ones and `JAVA_HOME` first; of those that Spark
    supports by default. Raises `LookupError` if there is none."""
    homes = list(_candidates())
    for version in supported:
        for home in homes:
            if _version(home) == version:
                return home
    searched = [str(home) for home in homes]
    raise LookupError(f"{program} needs JDK {supported[0]}: none in JAVA_HOME, on PATH or among {searched}")


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    # The action setup-java installs several, and names each by such a variable.
    yield from (Path(home) for name, home in sorted(os.environ.items()) if re.fullmatch(r"JAVA_HOME_\d+_\w+", name))
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parents[1]
    for folder, pattern in _INSTALLED:
        yield from sorted(folder.glob(pattern))


def _version(home: Path) -> int | None:
    """The major version that a JDK's `release` file names."""
    release = home / "release"
    if not release.is_file() or not (home / "bin" / "java").exists():
        return None
    found = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.MULTILINE)
    return int(found.group(1)) if found else None


@contextmanager
def stderr_in(file: Path) -> Iterator[None]:
    """What is started inside writes its standard error to `file`: a JVM greets with warnings that mean nothing."""
    ours = os.dup(2)
    try:
        with file.open("wb") as theirs:
            os.dup2(theirs.fileno(), 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
