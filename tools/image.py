"""Builds the container image: `python -m tools.image`, with docker, podman or buildah.

Without `--platforms` the image is for this machine, under the name `arco-catalog`; with them it is an OCI archive in
`dist/` that holds one image for each, for a registry to be filled from. `--extras` keeps it to the libraries of some
clouds. Needs nothing but the standard library.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
NAME = "arco-catalog"
ARCHIVE = "dist/arco-catalog-image.tar"
ANSWER_SECONDS = 20
NO_BUILDER = (
    "No image was built: this machine has no docker whose daemon answers, and neither podman nor buildah. Install one, "
    "or build the Dockerfile where there is one."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the image. Returns the exit code of the builder, or 1 with a message if this machine has none."""
    parser = argparse.ArgumentParser(prog="image", description="Build the container image.")
    parser.add_argument("--platforms", default="", help="such as linux/amd64,linux/arm64")
    parser.add_argument(
        "--extras", default="", help="clouds whose stores it opens, such as gcs or s3,gcs [default all]"
    )
    parsed = parser.parse_args(arguments)
    platforms: str = parsed.platforms
    extras: str = parsed.extras
    builder = find_builder()
    if builder is None:
        sys.stderr.write(f"{NO_BUILDER}\n")
        return 1
    (PROJECT / ARCHIVE).parent.mkdir(exist_ok=True)
    for command in commands(builder, platforms, extras):
        sys.stdout.write(f"{' '.join(command)}\n")
        sys.stdout.flush()
        code = subprocess.run(command, cwd=PROJECT, check=False).returncode
        if code:
            return code
    return 0


def find_builder() -> str | None:
    """The first of docker, podman and buildah that can build here; docker only if its daemon answers."""
    for tool in ("docker", "podman", "buildah"):
        if shutil.which(tool) and (tool != "docker" or _answers()):
            return tool
    return None


def commands(builder: str, platforms: str, extras: str = "") -> Sequence[Sequence[str]]:
    """The commands that build the image."""
    chosen = ["--build-arg", f"ARCO_EXTRAS={extras}"] if extras else []
    if not platforms:
        return [[builder, "build", *chosen, "--tag", NAME, "."]]
    if builder == "docker":
        output = f"type=oci,dest={ARCHIVE}"
        return [["docker", "buildx", "build", *chosen, "--platform", platforms, "--tag", NAME, "--output", output, "."]]
    return [
        [builder, "build", *chosen, "--platform", platforms, "--manifest", NAME, "."],
        [builder, "manifest", "push", "--all", NAME, f"oci-archive:{ARCHIVE}"],
    ]


def _answers() -> bool:
    try:
        info = subprocess.run(["docker", "info"], capture_output=True, timeout=ANSWER_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return info.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
