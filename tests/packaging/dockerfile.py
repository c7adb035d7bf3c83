"""A Dockerfile as stages of instructions, and what its build stage does on this machine, in a folder of its own."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
STEP_SECONDS = 1200


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile, its continued lines joined."""

    name: str
    text: str

    @property
    def words(self) -> Sequence[str]:
        """The text as a shell splits it, or the elements of its JSON array."""
        start = self.text.find("[")
        return json.loads(self.text[start:]) if start >= 0 and self.name != "RUN" else shlex.split(self.text)


def stages(path: Path) -> Sequence[Sequence[Instruction]]:
    """The instructions of each stage, each from its FROM on."""
    text = re.sub(r"(?m)^#.*\n", "", path.read_text()).replace("\\\n", " ")
    found: list[list[Instruction]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append(Instruction(name, rest.strip()))
    return found


BUILD, FINAL = stages(PROJECT / "Dockerfile")
"""The instructions of the stage that builds, and of the image's own."""


def instruction(name: str) -> Instruction:
    """The last instruction of this name in the image's own stage."""
    return next(each for each in reversed(FINAL) if each.name == name)


def environment_of(stage: Sequence[Instruction]) -> dict[str, str]:
    """What a stage's ENV instructions say."""
    words = [word for instruction in stage if instruction.name == "ENV" for word in instruction.words]
    return dict(word.split("=", 1) for word in words)


def context(project: Path) -> Iterator[str]:
    """The files that a builder is sent, by .dockerignore: the last pattern that fits decides."""
    patterns = [line for line in (project / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    for file in sorted(path for top in project.iterdir() if top.name[0] != "." for path in _files(top)):
        name = file.relative_to(project).as_posix()
        kept = True
        for pattern in patterns:
            bare = pattern.removeprefix("!")
            tails = [name.split("/", depth)[-1] for depth in range(name.count("/") + 1)] if "**/" in bare else [name]
            parts = bare.removeprefix("**/")
            if any(fnmatch(tail, parts) or fnmatch(tail, f"{parts}/*") for tail in tails):
                kept = pattern[0] == "!"
        if kept:
            yield name


def _files(path: Path) -> Iterator[Path]:
    return iter([path]) if path.is_file() else (file for file in path.rglob("*") if file.is_file())


def arguments_of(stage: Sequence[Instruction]) -> dict[str, str]:
    """The build arguments of a stage, as they are unless given."""
    return dict(instruction.text.split("=", 1) for instruction in stage if instruction.name == "ARG")


def perform(stage: Sequence[Instruction], project: Path, root: Path, **arguments: str) -> None:
    """Runs the COPY and RUN instructions of a stage with `root` in place of /, and with these build arguments. Raises
    `AssertionError` for a step that fails."""
    source, programs = root / "src", root / "bin"
    source.mkdir(parents=True)
    (root / "opt").mkdir()
    programs.mkdir()
    (programs / "python").symlink_to(Path(sys.executable).resolve())
    sent = set(context(project))
    environment = {name: os.environ[name] for name in os.environ if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environment |= {"PATH": f"{programs}:{os.environ['PATH']}", **environment_of(stage)}
    environment |= {**arguments_of(stage), **arguments}
    for instruction in stage:
        if instruction.name == "COPY":
            *origins, target = instruction.words
            for origin in origins:
                _copy(project, sent, origin, source / target, whole=not target.endswith("/") and target != "./")
        elif instruction.name == "RUN":
            script = re.sub(r"(?<![\w.])/(?=(opt|data)\b)", f"{root}/", instruction.text)
            done = subprocess.run(
                ["/bin/sh", "-euc", script],
                cwd=source,
                env=environment,
                capture_output=True,
                text=True,
                timeout=STEP_SECONDS,
                check=False,
            )
            assert done.returncode == 0, f"RUN {script}\n{done.stdout}\n{done.stderr}"


def _copy(project: Path, sent: set[str], origin: str, target: Path, *, whole: bool) -> None:
    names = [name for name in sent if name == origin or name.startswith(f"{origin}/")]
    assert names, f"COPY {origin}: .dockerignore keeps it out, or it is not there"
    for name in names:
        place = target / (name.removeprefix(f"{origin}/") if whole else Path(name).name)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(project / name, place)
