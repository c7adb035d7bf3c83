"""The zip with Amazon's SDK: what it holds more than the other, and that the API works by it."""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from tests.lambda_.conftest import Caller
from tools.gateway.running import running
from tools.package import PLATFORMS, Variant, build
from tools.support.request_bodies import schema

LIMIT_BYTES = 110_000_000  # of which fastavro is 26 MB; Lambda's own is 250 MB
ZIPPED_LIMIT_BYTES = 40_000_000  # and 50 MB, to be uploaded as it is

Deploy = Callable[[], dict[str, str]]


@pytest.fixture(scope="module")
def sdk_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("package") / "arco-catalog-lambda-sdk.zip"
    build(path, Variant.SDK)
    return path


@contextmanager
def api_of(archive: Path, log: Path, environment: dict[str, str]) -> Iterator[Caller]:
    with running(archive, Endpoint.HTTP_API, log, {**environment, "ARCO_S3_CLIENT": "sdk"}) as uri:
        yield Caller(uri)


@pytest.mark.slow
def test_the_api_works_by_the_sdk(sdk_archive: Path, deployed: Deploy, tmp_path: Path) -> None:
    table = {"name": "t", "schema": schema("a")}
    with api_of(sdk_archive, tmp_path / "log", deployed()) as api:
        assert api.post("/v1/wh/namespaces", {"namespace": ["db"]}).status == 200
        assert api.post("/v1/wh/namespaces/db/tables", table).status == 200
        loaded = api.get("/v1/wh/namespaces/db/tables/t")
    assert loaded.status == 200
    assert str(loaded.json["metadata-location"]).startswith("s3://lambda-")


def test_the_zip_without_it_says_that_it_lacks_it(folder: Path, deployed: Deploy, tmp_path: Path) -> None:
    with api_of(folder, tmp_path / "log", deployed()) as api:
        assert api.get("/v1/wh/namespaces").status >= 500
    assert "aiohttp is not installed" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_it_is_small_and_has_the_models_of_two_services(sdk_archive: Path) -> None:
    with zipfile.ZipFile(sdk_archive) as opened:
        names = [PurePosixPath(name) for name in opened.namelist()]
        assert sum(entry.file_size for entry in opened.infolist()) < LIMIT_BYTES
    assert sdk_archive.stat().st_size < ZIPPED_LIMIT_BYTES
    models = PurePosixPath("botocore/data")
    assert {name.parts[2] for name in names if models in name.parents and len(name.parts) > 3} == {"s3", "sts"}


@pytest.mark.slow
def test_every_compiled_module_is_there_for_every_platform(sdk_archive: Path) -> None:
    with zipfile.ZipFile(sdk_archive) as opened:
        names = opened.namelist()
    compiled: dict[str, set[str]] = {}
    for name in names:
        if name.endswith(".so"):
            module, _, platform = name.partition(".cpython-")
            compiled.setdefault(module, set()).add(platform)
    tags = {f"{platform.tag}.so" for platform in PLATFORMS}
    assert {"aiohttp/_http_parser", "multidict/_multidict"} < set(compiled)
    assert all(platforms == tags for platforms in compiled.values()), compiled
