"""The root file system of the image as a folder, and programs that run in it as its user, with nothing else to see."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.dockerfile import FINAL, environment_of, instruction

OF_THE_SYSTEM = [Path(name) for name in ("/usr", "/bin", "/lib", "/lib64") if Path(name).exists()]
"""Stand-ins for the base image's own files, with this Python as its /usr/local."""

MOUNT = """
root=$1 volume=$2 python=$3 user=$4; shift 4
mount --make-rprivate /
mount --bind "$root" "$root"
for folder in usr bin lib lib64; do
  [ ! -d "$root/$folder" ] || [ -L "$root/$folder" ] || mount --bind "/$folder" "$root/$folder"
done
mount --bind "$python" "$root/usr/local"
mount --bind "$volume" "$root/var/lib/arco"
mount --rbind /proc "$root/proc"
for device in null urandom; do mount --bind "/dev/$device" "$root/dev/$device"; done
for mounted in "$root/usr/local" "$root/usr" "$root"; do mount -o remount,bind,ro "$mounted"; done
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
exec chroot --userspec="$user" "$root" env --chdir="$WORKDIR" "$@"
"""


@dataclass(frozen=True)
class Image:
    """An assembled root, and the folder that is its volume."""

    root: Path
    volume: Path

    def command(self, program: Sequence[str]) -> Sequence[str]:
        """What runs a program in the root: read-only but for the volume and /tmp, as the image's user."""
        given = (str(self.root), str(self.volume), sys.base_prefix, instruction("USER").text)
        return ("unshare", "--mount", "sh", "-euc", MOUNT, "sh", *given, *program)

    def environment(self, **more: str) -> Mapping[str, str]:
        """The image's variables, and more."""
        of_image = environment_of(FINAL)
        path = of_image["PATH"].replace("$PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        return {
            **of_image,
            "PATH": path,
            "LD_LIBRARY_PATH": "/usr/local/lib",
            "WORKDIR": instruction("WORKDIR").text,
            **more,
        }


def assemble(built: Path, folder: Path) -> Image:
    """The image's root in a folder: what its own stage copies out of the build stage's file system `built`."""
    root, volume = folder / "root", folder / "volume"
    for name in ("usr", "proc", "tmp", "dev/shm", "var/lib/arco"):
        (root / name).mkdir(parents=True)
    for path in OF_THE_SYSTEM[1:]:
        if path.is_symlink():
            (root / path.name).symlink_to(os.readlink(path))
        else:
            (root / path.name).mkdir()
    for device in ("null", "urandom"):
        (root / "dev" / device).touch()
    for each in FINAL:
        if each.name == "COPY":
            *options, origin, target = each.words
            assert options[0] == "--from=build"
            place = root / target.lstrip("/")
            shutil.copytree(built / origin.lstrip("/"), place, symlinks=True, dirs_exist_ok=True)
    shutil.copytree(root / "var/lib/arco", volume)
    user, group = map(int, instruction("USER").text.split(":"))
    os.chown(volume, user, group)
    _move(root / "opt/arco", built)
    return Image(root, volume)


def _move(environment: Path, built: Path) -> None:
    """Lets an environment that was made below the folder `built` run at the place that it has in the image."""
    (environment / "bin/python").unlink()
    (environment / "bin/python").symlink_to("/usr/local/bin/python3.11")
    for script in (environment / "pyvenv.cfg", *(environment / "bin").iterdir()):
        if script.is_file() and not script.is_symlink():
            text = script.read_text().replace(f"{built}/opt", "/opt")
            script.write_text(text if script.suffix != ".cfg" else _at_home(text))


def _at_home(configuration: str) -> str:
    lines = configuration.splitlines()
    return "".join(f"{'home = /usr/local/bin' if line.startswith('home') else line}\n" for line in lines)
