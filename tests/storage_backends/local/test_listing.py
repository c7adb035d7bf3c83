"""A listing of a tree is the sorted list of its keys, from any key on."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_backends import Listed, Version
from storage_backends.local.files import open_folder_nofollow
from storage_backends.local.listing import PAUSED_WALKS, Listing, PausedWalks, Walk
from storage_backends.local.store import LocalStore
from storage_backends.validation import PAGE_SIZE

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
        with open_folder_nofollow(root, []) as folder:
            assert folder is not None
            for after in ["", *keys, *places]:
                walk = Listing(prefix, after, ".arco-store").walk(folder, "")
                listed = [entry.key for entry in walk if isinstance(entry, Listed)]
                assert listed == [key for key in sorted(keys) if key.startswith(prefix) and key > after]


async def test_a_listing_reads_a_folder_once_however_many_pages_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / "many").mkdir()
    for number in range(3 * PAGE_SIZE):
        (tmp_path / f"many/{number:05}").write_bytes(b"")
    scanned: list[object] = []
    scan = os.scandir

    def scandir(folder: int) -> Iterator[os.DirEntry[str]]:
        scanned.append(folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scandir)

    pages = [await store.list("many/")]
    while pages[-1].after is not None:
        (tmp_path / f"many/{PAGE_SIZE * len(pages) + 500:05}").unlink()  # what goes meanwhile is not listed
        pages.append(await store.list("many/", pages[-1].after))
    again = await store.list("many/", pages[0].after)
    await store.close()

    gone = {PAGE_SIZE + 500, 2 * PAGE_SIZE + 500}
    left = [f"many/{number:05}" for number in range(3 * PAGE_SIZE) if number not in gone]
    assert [entry.key for page in pages for entry in page.entries] == left
    assert len(scanned) == 2  # for each of the two listings
    assert [entry.key for entry in again.entries] == left[PAGE_SIZE : 2 * PAGE_SIZE]


def test_few_walks_are_kept_open() -> None:
    ended: list[int] = []

    def walk(number: int) -> Walk:
        try:
            yield Listed(str(number), Version(""), 0, 0)
            yield Listed(str(number), Version(""), 0, 0)
        finally:
            ended.append(number)

    paused = PausedWalks()
    for number in range(PAUSED_WALKS + 2):
        begun = walk(number)
        next(begun)
        paused.keep("prefix", str(number), begun)

    assert ended == [0, 1]
    assert paused.take("prefix", "0") is None
    assert paused.take("prefix", "2") is not None
    paused.close()
    assert sorted(ended)[:2] == [0, 1]
    assert len(ended) == PAUSED_WALKS + 2


def test_only_folders_on_the_way_are_read(tmp_path: Path) -> None:
    for name in ("a/1", "b/2", "b/c/3", "d/4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    read: list[str] = []

    class SpiedStore(Listing):
        def _names(self, folder: int, path: str) -> list[str]:
            read.append(path)
            return super()._names(folder, path)

    with open_folder_nofollow(str(tmp_path), []) as folder:
        assert folder is not None
        walk = SpiedStore("b/", "b/2", "").walk(folder, "")
        assert [entry.key for entry in walk if isinstance(entry, Listed)] == ["b/c/3"]
    assert read == ["", "b/", "b/c/"]
