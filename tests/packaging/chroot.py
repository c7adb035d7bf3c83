"""The root file system of an image as a folder, and programs that run in it as a container's would: as its user,
without capabilities, with a root that cannot be written and nothing else to see."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.packaging.dockerfile import FINAL, environment_of, instruction

OF_THE_SYSTEM = [Path(name) for name in ("/usr", "/bin", "/lib", "/lib64") if Path(name).exists()]
"""Stand-ins for the base image's own files, with another folder as its /usr/local."""
VOLUME = instruction("VOLUME").text

MOUNT = """
root=$1 local=$2 user=$3; shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
for folder in usr bin lib lib64; do
  [ ! -d "$root/$folder" ] || [ -L "$root/$folder" ] || mount --bind "/$folder" "$root/$folder"
done
mount --bind "$local" "$root/usr/local"
mount --rbind /proc "$root/proc"
for device in null urandom; do mount --bind "/dev/$device" "$root/dev/$device"; done
for mounted in "$root/usr/local" "$root/usr" "$root"; do mount -o remount,bind,ro "$mounted"; done
while [ "$1" != -- ]; do
  case $1 in
    rw) mount --bind "$2" "$root$3" ;;
    ro) mount --bind "$2" "$root$3"; mount -o remount,bind,ro "$root$3" ;;
    *) mount -t tmpfs -o mode=1777 "$2" "$root$3" ;;
  esac
  shift 3
done
shift
exec chroot "$root" setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --inh-caps=-all \
  --bounding-set=-all --no-new-privs env --chdir="$WORKDIR" "$@"
"""


@dataclass(frozen=True)
class Mount:
    """A file or folder of this machine at a place in the root; without one, an empty file system in memory."""

    target: str
    source: Path | None = None
    read_only: bool = False

    @property
    def words(self) -> Sequence[str]:
        """Its three arguments of the script that mounts."""
        if self.source is None:
            return ("memory", "tmpfs", self.target)
        return ("ro" if self.read_only else "rw", str(self.source), self.target)


@dataclass(frozen=True)
class Root:
    """A folder as the root of programs, with another as its /usr/local, the user of the programs, and its mounts."""

    folder: Path
    local: Path
    user: str
    mounts: Sequence[Mount]

    def mounting(self, *mounts: Mount) -> "Root":
        """Returns this root with more mounts, whose places it makes."""
        for mount in mounts:
            place = self.folder / mount.target.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if mount.source is None or mount.source.is_dir():
                place.mkdir(exist_ok=True)
            else:
                place.touch()
        return replace(self, mounts=(*self.mounts, *mounts))

    def command(self, program: Sequence[str]) -> Sequence[str]:
        """What runs a program in the root. It takes the variable WORKDIR."""
        mounts = [word for mount in self.mounts for word in mount.words]
        given = (str(self.folder), str(self.local), self.user, *mounts, "--")
        return ("unshare", "--mount", "sh", "-euc", MOUNT, "sh", *given, *program)


def bare_root(folder: Path, local: Path, user: str) -> Root:
    """A root of the stand-ins alone, with memory at /dev/shm."""
    for name in ("usr", "proc", "dev"):
        (folder / name).mkdir(parents=True)
    for path in OF_THE_SYSTEM[1:]:
        if path.is_symlink():
            (folder / path.name).symlink_to(os.readlink(path))
        else:
            (folder / path.name).mkdir()
    for device in ("null", "urandom"):
        (folder / "dev" / device).touch()
    return Root(folder, local, user, ()).mounting(Mount("/dev/shm"))


def image_root(built: Path, folder: Path) -> Root:
    """The image's root in a folder: what its own stage copies out of the build stage's file system `built`. It has no
    volume and no /tmp yet."""
    root = bare_root(folder, Path(sys.base_prefix), instruction("USER").text)
    user, group = map(int, root.user.split(":"))
    for each in FINAL:
        if each.name == "COPY":
            *options, origin, target = each.words
            assert options[0] == "--from=build"
            place = folder / target.lstrip("/")
            shutil.copytree(built / origin.lstrip("/"), place, symlinks=True, dirs_exist_ok=True)
    os.chown(folder / VOLUME.lstrip("/"), user, group)
    _move(folder / "opt/arco", built)
    return root


def environment(**more: str) -> Mapping[str, str]:
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
