import subprocess
import sys
from pathlib import Path

import pytest

from storage_backends import ABSENT, Found, Missing
from storage_backends.local.store import LocalStore
from storage_backends.memory import MemoryStore
from storage_backends.open import open_store
from storage_backends.s3.store import S3Store
from tools.support.environment import PROJECT
from tools.support.s3_servers import S3Server


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "file://localhost{}", "FILE:{}/"])
async def test_a_file_url_opens_a_folder(tmp_path: Path, form: str) -> None:
    store = open_store(form.format(f"{tmp_path}/with%20a%20space"), {})

    assert isinstance(store, LocalStore)
    await store.put("key", b"body", ABSENT)
    await store.close()
    assert (tmp_path / "with a space/key").read_bytes() == b"body"


async def test_each_memory_url_opens_another_store() -> None:
    first, second = open_store("memory:", {}), open_store("memory:", {})

    assert isinstance(first, MemoryStore)
    await first.put("key", b"", ABSENT)
    assert isinstance(await second.get("key"), Missing)


@pytest.mark.parametrize(("path", "prefix"), [("", ""), ("/", ""), ("/some/prefix", "some/prefix/"), ("/p/", "p/")])
async def test_an_s3_url_opens_a_prefix_of_a_bucket(
    s3_server: S3Server, s3_bucket: str, path: str, prefix: str
) -> None:
    store, whole = (open_store(f"s3://{s3_bucket}{below}", s3_server.environment) for below in (path, ""))

    assert isinstance(store, S3Store)
    await store.put("key", b"", ABSENT)
    assert isinstance(await whole.get(f"{prefix}key"), Found)
    assert [entry.key for entry in (await store.list("")).entries] == ["key"]
    await store.close()
    await whole.close()


async def test_prefixes_do_not_see_each_other(s3_server: S3Server, s3_bucket: str) -> None:
    one, longer = (open_store(f"s3://{s3_bucket}/{name}", s3_server.environment) for name in ("one", "one-more"))
    await longer.put("key", b"", ABSENT)

    assert (await one.list("")).entries == ()
    assert isinstance(await one.get("key"), Missing)
    await one.close()
    await longer.close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "memory:"),
        ("/absolute/path", "for a folder, write file:/absolute/path"),
        ("relative/path", "memory:"),
        ("oss://bucket", "memory:"),
        ("http://bucket/prefix", "memory:"),
        ("file:", "absolute"),
        ("file:relative/path", "absolute"),
        ("file://host/path", "host"),
        ("memory:name", "memory"),
        ("memory://name", "memory"),
        ("s3:", "bucket"),
        ("s3:///prefix", "bucket"),
        ("s3:prefix", "bucket"),
        ("s3://bucket/a//b", "prefix"),
        ("s3://bucket/../b", "prefix"),
        ("s3://bucket/a?region=x", "query"),
        ("gs:", "bucket"),
        ("gs:///prefix", "bucket"),
        ("gs://bucket/a//b", "prefix"),
        ("gs://bucket/../b", "prefix"),
        ("file:/a#b", "fragment"),
    ],
)
def test_any_other_url_is_refused_in_words(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        open_store(url, {})


def test_only_the_module_of_the_opened_store_is_imported() -> None:
    code = (
        "import sys; from storage_backends.open import open_store\n"
        "open_store('file:/nowhere', {}); open_store('memory:', {})\n"
        "assert not {'httptools', 'botocore', 'google.auth'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=True, timeout=30)


@pytest.mark.parametrize("opener", ["open_store", "open_versions"])
def test_the_error_of_a_missing_sdk_names_the_extra(opener: str) -> None:
    code = (
        "import sys; sys.modules['httptools'] = None\n"
        f"from storage_backends.open import {opener}\n"
        f"try: {opener}('s3://bucket', {{}})\n"
        "except ValueError as error: print(error)"
    )
    command = [sys.executable, "-c", code]
    completed = subprocess.run(command, cwd=PROJECT, check=True, timeout=30, capture_output=True, text=True)
    assert "extra 's3'" in completed.stdout
