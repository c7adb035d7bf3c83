"""A listing of a tree is the sorted list of its keys, from any key on."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from storage_backends.local_files import folder_beneath
from storage_backends.local_listing import Listing

# Characters on both sides of "/", which a listing by folders would sort wrongly.
SEGMENTS = st.text("a-.!0é", min_size=1, max_size=3).filter(lambda segment: segment not in (".", ".."))
KEYS = st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join)


def tree_of(keys: set[str]) -> set[str]:
    """The keys that a tree can hold: none of them is a folder of another."""
    folders = {key[:place] for key in keys for place, char in enumerate(key) if char == "/"}
    return keys - folders


@given(st.sets(KEYS, max_size=12).map(tree_of), st.lists(KEYS, max_size=3), st.text("a-.!0é/", max_size=4))
def test_a_listing_resumes_after_any_key(keys: set[str], places: list[str], prefix: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        for key in keys:
            path = Path(root, key)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        with folder_beneath(root, []) as folder:
            assert folder is not None
            for after in ["", *keys, *places]:
                listed = [entry.key for entry in Listing(prefix, after, ".arco-store").walk(folder, "")]
                assert listed == [key for key in sorted(keys) if key.startswith(prefix) and key > after]


def test_only_folders_on_the_way_are_read(tmp_path: Path) -> None:
    for name in ("a/1", "b/2", "b/c/3", "d/4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    read: list[str] = []

    class Spied(Listing):
        def _names(self, folder: int, path: str) -> list[str]:
            read.append(path)
            return super()._names(folder, path)

    with folder_beneath(str(tmp_path), []) as folder:
        assert folder is not None
        assert [entry.key for entry in Spied("b/", "b/2", "").walk(folder, "")] == ["b/c/3"]
    assert read == ["", "b/", "b/c/"]
