"""`arco serve` with a realm in MinIO, and a catalog there whose files are reached by what the catalog gives alone."""

import itertools
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog

from arco_catalog.cli.client_config import ALL_ROLES, TOKENS
from tools.support.arco_server import ARCO, ArcoServer
from tools.support.environment import exported
from tools.support.s3_servers import S3Server

KEY = "0123456789abcdef0123456789abcdef"
ROLE = {"roleArn": "arn:aws:iam::123456789012:role/lake"}
"""MinIO takes any, and gives what the session policy allows of the rights of whoever assumes it."""
SIGNED = {
    "header.X-Iceberg-Access-Delegation": "remote-signing",
    "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
}
"""Has PyIceberg ask for signatures: Arrow, which it reads and writes files with by default, signs by itself alone."""
NO_KEYS = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null"}
"""What keeps a client from looking for keys that this machine may have."""

_buckets = itertools.count(1)


@dataclass
class Lake:
    """The server, and its catalog `lake`. `store` is its URL."""

    server: S3Server
    arco: ArcoServer
    bucket: str
    root: str
    log: Path
    options: Sequence[str]

    @property
    def store(self) -> str:
        return f"s3://{self.bucket}/catalog"

    def token(self, credential: str) -> str:
        client_id, _, secret = credential.partition(":")
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        answer = requests.post(f"{self.arco.uri}{TOKENS}", {**form, "scope": ALL_ROLES}, timeout=60)
        return str(answer.json()["access_token"])

    def manage(self, method: str, path: str, body: object) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {self.token(self.root)}", "Content-Type": "application/json"}
        url = f"{self.arco.uri}/api/management/v1/{path}"
        answer = requests.request(method, url, data=json.dumps(body), headers=headers, timeout=60)
        assert answer.status_code < 300, answer.text
        found: dict[str, object] = answer.json() if answer.content else {}
        return found

    def principal(self, name: str, *privileges: str, **properties: str) -> str:
        """Makes a principal that holds privileges in the catalog, and gives what it logs in with."""
        person = {"name": name, "properties": properties}
        made = self.manage("POST", "principals", {"principal": person})["credentials"]
        assert isinstance(made, dict)
        self.manage("POST", "principal-roles", {"principalRole": {"name": name}})
        self.manage("PUT", f"principals/{name}/principal-roles", {"principalRole": {"name": name}})
        role = {"catalogRole": {"name": name}}
        self.manage("POST", "catalogs/lake/catalog-roles", role)
        self.manage("PUT", f"principal-roles/{name}/catalog-roles/lake", role)
        for privilege in privileges:
            grant = {"grant": {"type": "catalog", "privilege": privilege}}
            self.manage("PUT", f"catalogs/lake/catalog-roles/{name}/grants", grant)
        return f"{made['clientId']}:{made['clientSecret']}"

    def client(self, credential: str, **properties: str) -> RestCatalog:
        """PyIceberg, which knows no key for the store."""
        return RestCatalog(
            "lake",
            uri=self.arco.uri,
            warehouse="lake",
            credential=credential,
            scope=ALL_ROLES,
            **{"oauth2-server-uri": f"{self.arco.uri}{TOKENS}", **properties},
        )

    @contextmanager
    def beside(self, *options: str) -> Iterator["Lake"]:
        """The same realm at another server, with other options."""
        log = self.log.with_name(f"{self.log.name}-beside")
        with ExitStack() as stack:
            with exported(self.server.environment):
                arco = stack.enter_context(ArcoServer(self.store, log, *self.options, *options))
            yield replace(self, arco=arco, log=log)

    def answered(self, what: str) -> list[datetime]:
        """When requests of this endpoint of any table were answered with 200 so far."""
        lines = [line for line in self.log.read_text().splitlines() if f"/{what} 200 " in line]
        return [datetime.fromisoformat(line.split()[0]) for line in lines]


@contextmanager
def realm_lake(server: S3Server, folder: Path, *options: str, **storage: object) -> Iterator[Lake]:
    """Makes it, serves it with more options, and takes MinIO's keys out of this process's environment. `storage` says
    more of how the catalog's storage is reached."""
    bucket = f"realm-{next(_buckets)}"
    server.make_bucket(bucket)
    store, log, keys = f"s3://{bucket}/catalog", folder / "log", folder / "token-keys"
    keys.write_text(KEY)
    made = subprocess.run(
        [ARCO, "bootstrap", "--store", store, "--json"], check=True, capture_output=True, text=True, timeout=120
    )
    root = json.loads(made.stdout)
    served = ("--auth", "internal", "--token-key-file", str(keys), "--log-level", "debug")
    with ArcoServer(store, log, *served, *options) as arco, pytest.MonkeyPatch.context() as patch, exported(NO_KEYS):
        for name in server.environment.keys() - NO_KEYS:
            patch.delenv(name)
        it = Lake(server, arco, bucket, f"{root['client_id']}:{root['client_secret']}", log, served)
        base = f"{store}/lake"
        reached = {"region": "us-east-1", "endpoint": server.endpoint, "pathStyleAccess": True}
        config = {"storageType": "S3", "allowedLocations": [base], **reached, **storage}
        catalog = {"name": "lake", "type": "INTERNAL", "properties": {"default-base-location": base}}
        it.manage("POST", "catalogs", {"catalog": {**catalog, "storageConfigInfo": config}})
        yield it
