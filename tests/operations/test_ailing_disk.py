"""A commit on a disk whose fsync fails is not acknowledged, however visible it is."""

import errno
import os
import stat
from pathlib import Path

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.protocol.catalog import Settings
from storage_backends.local.store import LocalStore
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_commit_that_was_never_made_to_last_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keyed: bool
) -> None:
    store = LocalStore(tmp_path)
    fixture = CatalogFixture(store, settings=Settings("wh", request_ms=2_000), url=f"file://{tmp_path}")
    await fixture.namespace("db")
    await fixture.table("t")
    fsync = os.fsync

    def fails_at_pointers(descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        if folder and os.readlink(f"/proc/self/fd/{descriptor}").endswith("/iceberg_pointers"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fails_at_pointers)
    key = fixture.key() if keyed else None

    with pytest.raises(CommitStateUnknown):
        await fixture.commit(set_property("a", "1"), key=key)
    if key is not None:
        monkeypatch.setattr(os, "fsync", fsync)
        assert (await fixture.commit(set_property("a", "1"), key=key)).metadata_location
    await store.close()
