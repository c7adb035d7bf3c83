"""The `polaris` command line manages a realm of `arco serve`, unchanged: each command, by the examples that its
documentation gives of it."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
import yaml
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import ViewVersion

from tests.support.polaris_cli import SCRIPT, PolarisCli, environment
from tools.support.arco_server import ARCO, ArcoServer

SECRET = "27029d236abc08e204922b0a07031bc2"


@dataclass(frozen=True)
class Realm:
    """A server, its command line as root, and a folder whose subfolders catalogs may have."""

    uri: str
    polaris: PolarisCli
    folder: Path

    def catalog(self, name: str, *namespaces: str) -> str:
        """Makes a catalog whose tables lie in the folder, with namespaces."""
        self.polaris(f"catalogs create {name} --storage-type file --default-base-location {self.location(name)}")
        for namespace in namespaces:
            self.polaris(f"namespaces create --catalog {name} {namespace}")
        return name

    def location(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def pyiceberg(self, catalog: str) -> Catalog:
        """A client of root's, who may write what is in the catalog."""
        polaris, uri = self.polaris, f"{self.uri}/api/catalog"
        polaris(f"privileges catalog grant --catalog {catalog} --catalog-role catalog_admin CATALOG_MANAGE_CONTENT")
        return load_catalog(
            "r",
            **{
                "type": "rest",
                "uri": uri,
                "warehouse": catalog,
                "credential": f"{polaris.options[3]}:{polaris.options[5]}",
                "scope": "PRINCIPAL_ROLE:ALL",
                "oauth2-server-uri": f"{uri}/v1/oauth/tokens",
            },
        )

    def make_generic_table(self, catalog: str, namespace: str, table: dict[str, str]) -> None:
        """Makes what the command line can only look at."""
        known = {"client_id": self.polaris.options[3], "client_secret": self.polaris.options[5]}
        form = urlencode({"grant_type": "client_credentials", "scope": "PRINCIPAL_ROLE:ALL", **known}).encode()
        base = f"{self.uri}/api/catalog"
        with urlopen(Request(f"{base}/v1/oauth/tokens", form), timeout=60) as answer:
            token = json.load(answer)["access_token"]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        target = f"{base}/polaris/v1/{catalog}/namespaces/{namespace}/generic-tables"
        urlopen(Request(target, json.dumps(table).encode(), headers), timeout=60).close()


@contextmanager
def served(home: Path) -> Iterator[Realm]:
    """A realm that was just made in a folder."""
    store, key = (home / "store").as_uri(), home / "key"
    key.write_text("0123456789abcdef" * 4)
    key.chmod(0o600)
    made = json.loads(subprocess.check_output([ARCO, "bootstrap", "--store", store, "--json"], timeout=120))
    options = ["--auth", "internal", "--token-key-file", str(key), "--allowed-location", (home / "tables").as_uri()]
    with (
        ArcoServer(store, home / "log", *options) as server,
        PolarisCli(server.uri, made["client_id"], made["client_secret"], home) as polaris,
    ):
        yield Realm(server.uri, polaris, home / "tables")


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with served(tmp_path_factory.mktemp("polaris")) as realm:
        yield realm


def test_the_console_script_lists_what_there_is(realm: Realm, tmp_path: Path) -> None:
    command = [str(SCRIPT), *realm.polaris.options, "principals", "list"]

    listed = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(tmp_path), check=True)

    assert "root" in {json.loads(line)["name"] for line in listed.stdout.splitlines()}


def test_a_wrong_secret_opens_nothing(realm: Realm) -> None:
    ran = realm.polaris.run("principals", "list", options=[*realm.polaris.options[:-1], "wrong"])

    assert ran.status == 1
    assert ran.err.startswith("Failed to get access token: invalid_client")


def test_catalogs(realm: Realm) -> None:
    polaris, base = realm.polaris, realm.location("c1")
    polaris(
        f"catalogs create --storage-type file --default-base-location {base} "
        f"--allowed-location {realm.location('c1-second')} --property owner=data my_catalog"
    )
    polaris(f"catalogs create my_external --type external --storage-type file --default-base-location {base}-external")

    assert polaris.one("catalogs get my_catalog") | {"createTimestamp": 0, "lastUpdateTimestamp": 0} == {
        "type": "INTERNAL",
        "name": "my_catalog",
        "properties": {"default-base-location": base, "owner": "data"},
        "createTimestamp": 0,
        "lastUpdateTimestamp": 0,
        "entityVersion": 1,
        "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [base, realm.location("c1-second")]},
    }
    assert polaris.one("catalogs get my_external")["type"] == "EXTERNAL"
    assert {"my_catalog", "my_external"} <= {str(each["name"]) for each in polaris.lines("catalogs list")}
    assert polaris.lines("catalogs list --principal-role service_admin")
    polaris("catalogs update --set-property tag=new_value my_catalog")
    polaris("catalogs update --remove-property owner my_catalog")
    polaris(f"catalogs update --default-base-location {base}-new my_catalog")
    polaris(f"catalogs update --allowed-location {base}-third my_catalog")
    changed = polaris.one("catalogs get my_catalog")
    assert changed["properties"] == {"default-base-location": f"{base}-new", "tag": "new_value"}
    storage = changed["storageConfigInfo"]
    assert isinstance(storage, dict)
    assert {base, f"{base}-new", f"{base}-third", realm.location("c1-second")} == {*storage["allowedLocations"]}
    assert "Storage Type:" in polaris("catalogs summarize my_catalog")
    polaris("catalogs delete my_catalog")
    polaris("catalogs delete my_external")
    assert polaris.refused("catalogs get my_catalog") == "NotFoundException: Catalog does not exist: my_catalog"


def test_a_catalog_that_is_not_empty_stays(realm: Realm) -> None:
    realm.catalog("full", "ns")

    assert "is not empty" in realm.polaris.refused("catalogs delete full")

    realm.polaris("namespaces delete --catalog full ns")
    realm.polaris("catalogs delete full")


def test_principals(realm: Realm) -> None:
    polaris = realm.polaris
    credentials = polaris.one("principals create some_user --property admin=true")
    assert {*credentials} == {"clientId", "clientSecret"}
    assert polaris.one("principals get some_user")["properties"] == {"admin": "true"}
    assert "some_user" in {each["name"] for each in polaris.lines("principals list")}
    polaris("principals update --set-property key=value --set-property other_key=other_value some_user")
    polaris("principals update --remove-property key some_user")
    assert polaris.one("principals get some_user")["properties"] == {"admin": "true", "other_key": "other_value"}
    assert "some_user" in polaris("principals access some_user")
    assert "some_user" in polaris("principals summarize some_user")
    assert "AlreadyExists" in polaris.refused("principals create some_user")
    polaris("principals delete some_user")
    assert polaris.refused("principals get some_user").startswith("NotFoundException")


def as_principal(realm: Realm, credentials: dict[str, object]) -> list[str]:
    """The options of commands for another principal."""
    known = ["--client-id", str(credentials["clientId"]), "--client-secret", str(credentials["clientSecret"])]
    return [*realm.polaris.options[:2], *known]


def test_a_principal_rotates_its_credentials_and_keeps_the_old_ones_for_once(realm: Realm) -> None:
    polaris = realm.polaris
    options = as_principal(realm, polaris.one("principals create rotating"))
    assert "lacks the privilege" in polaris.refused("principals rotate-credentials rotating")

    ran = polaris.run("principals", "rotate-credentials", "rotating", options=options)

    assert (ran.status, ran.err) == (0, "")
    rotated = as_principal(realm, json.loads(ran.out))
    assert rotated[3] == options[3]
    assert rotated[5] != options[5]
    for known in (options, rotated):
        denied = polaris.run("principals", "list", options=known)
        assert "lacks the privilege PRINCIPAL_LIST" in denied.err
    assert polaris.run("principals", "rotate-credentials", "rotating", options=rotated).status == 0
    assert "invalid_client" in polaris.run("principals", "list", options=options).err


def test_the_root_resets_credentials(realm: Realm) -> None:
    polaris = realm.polaris
    before = as_principal(realm, polaris.one("principals create reset_user"))
    new = polaris.one("principals reset reset_user")
    assert new["clientId"] == before[3]
    assert polaris.one("principals reset --new-client-id e469c048cf866df1 reset_user")["clientId"] == "e469c048cf866df1"
    assert polaris.one(f"principals reset --new-client-secret {SECRET} reset_user")["clientSecret"] == SECRET
    both = polaris.one(f"principals reset --new-client-id e469c048cf866df2 --new-client-secret {SECRET} reset_user")
    assert both == {"clientId": "e469c048cf866df2", "clientSecret": SECRET}

    denied = polaris.run("principals", "list", options=as_principal(realm, both))
    assert "lacks the privilege" in denied.err
    assert "lacks the privilege" not in polaris.run("principals", "list", options=before).err


def test_principal_roles(realm: Realm) -> None:
    polaris = realm.polaris
    realm.catalog("roles")
    polaris("principals create d.knuth")
    polaris("principal-roles create data_engineer")
    polaris("principal-roles create --property key=value data_analyst")
    polaris("principal-roles grant --principal d.knuth data_engineer")
    polaris("principal-roles grant data_analyst --principal d.knuth")
    assert polaris.one("principal-roles get data_analyst")["properties"] == {"key": "value"}
    assert {"service_admin", "data_engineer", "data_analyst"} <= {
        str(each["name"]) for each in polaris.lines("principal-roles list")
    }
    assert [each["name"] for each in polaris.lines("principal-roles list --principal d.knuth")] == [
        "data_analyst",
        "data_engineer",
    ]
    polaris("principal-roles update --set-property key=value2 data_engineer")
    polaris("principal-roles update data_analyst --set-property key=value3")
    polaris("principal-roles update data_analyst --remove-property key")
    assert polaris.one("principal-roles get data_engineer")["properties"] == {"key": "value2"}
    assert polaris.one("principal-roles get data_analyst")["properties"] == {}
    assert "d.knuth" in polaris("principal-roles summarize data_engineer")
    polaris("principal-roles revoke --principal d.knuth data_engineer")
    polaris("principal-roles revoke data_analyst --principal d.knuth")
    assert polaris.lines("principal-roles list --principal d.knuth") == []
    polaris("principal-roles delete data_engineer")
    polaris("principal-roles delete data_analyst")
    assert polaris.refused("principal-roles get data_analyst").startswith("NotFoundException")


def test_catalog_roles(realm: Realm) -> None:
    polaris = realm.polaris
    catalog = realm.catalog("some_catalog")
    polaris("principal-roles create power_user")
    polaris(f"catalog-roles create --property key=value --catalog {catalog} sales_data")
    polaris(f"catalog-roles create --catalog {catalog} inventory_data")
    assert polaris.one(f"catalog-roles get --catalog {catalog} sales_data")["properties"] == {"key": "value"}
    polaris(f"catalog-roles update --set-property contains_pii=true --catalog {catalog} sales_data")
    polaris(f"catalog-roles update sales_data --catalog {catalog} --remove-property key")
    assert polaris.one(f"catalog-roles get --catalog {catalog} sales_data")["properties"] == {"contains_pii": "true"}
    polaris(f"catalog-roles grant sales_data --catalog {catalog} --principal-role power_user")
    polaris(f"catalog-roles grant --catalog {catalog} inventory_data --principal-role power_user")
    assert [each["name"] for each in polaris.lines(f"catalog-roles list {catalog}")] == [
        "catalog_admin",
        "inventory_data",
        "sales_data",
    ]
    assert [each["name"] for each in polaris.lines(f"catalog-roles list {catalog} --principal-role power_user")] == [
        "inventory_data",
        "sales_data",
    ]
    assert catalog in {each["name"] for each in polaris.lines("catalogs list --principal-role power_user")}
    assert "Total Grants:" in polaris(f"catalog-roles summarize --catalog {catalog} sales_data")
    polaris(f"catalog-roles revoke sales_data --catalog {catalog} --principal-role power_user")
    polaris(f"catalog-roles revoke --catalog {catalog} inventory_data --principal-role power_user")
    assert polaris.lines(f"catalog-roles list {catalog} --principal-role power_user") == []
    polaris(f"catalog-roles delete --catalog {catalog} sales_data")
    polaris(f"catalog-roles delete --catalog {catalog} inventory_data")
    assert polaris.refused(f"catalog-roles get --catalog {catalog} sales_data").startswith("NotFoundException")


def test_namespaces(realm: Realm) -> None:
    polaris, catalog = realm.polaris, realm.catalog("spaces", "outer")
    location = f"{realm.location('spaces')}/outer/inner/SUFFIX"
    polaris(f"namespaces create --catalog {catalog} --location {location} outer.inner --property a=b")
    assert polaris.lines(f"namespaces list --catalog {catalog}") == [{"namespace": "outer"}]
    assert polaris.lines(f"namespaces list --catalog {catalog} --parent outer") == [{"namespace": "outer.inner"}]
    got = polaris.one(f"namespaces get outer.inner --catalog {catalog}")
    assert got["properties"] == {"a": "b", "location": location}
    assert "Sub-namespaces:" in polaris(f"namespaces summarize --catalog {catalog} outer")
    assert "not empty" in polaris.refused(f"namespaces delete --catalog {catalog} outer")
    polaris(f"namespaces delete outer.inner --catalog {catalog}")
    polaris(f"namespaces delete --catalog {catalog} outer")
    assert polaris.lines(f"namespaces list --catalog {catalog}") == []


def make_relations(realm: Realm, catalog: str, namespace: str) -> None:
    client = realm.pyiceberg(catalog)
    schema = Schema(NestedField(1, "x", LongType(), required=False))
    client.create_table(f"{namespace}.t", schema)
    version = ViewVersion.model_validate(
        {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "representations": [{"type": "sql", "sql": "SELECT 1 AS x", "dialect": "spark"}],
            "default-namespace": [namespace],
        }
    )
    client.create_view(f"{namespace}.v", schema, version)


def test_tables_views_and_find(realm: Realm) -> None:
    polaris, catalog = realm.polaris, realm.catalog("relations", "ns1")
    make_relations(realm, catalog, "ns1")
    where = f"--catalog {catalog} --namespace ns1"

    assert [each["name"] for each in polaris.lines(f"tables list {where}")] == ["t"]
    assert "metadata-location" in polaris(f"tables get t {where}")
    assert "Table: ns1.t" in polaris(f"tables summarize t {where}")
    assert [each["name"] for each in polaris.lines(f"views list {where}")] == ["v"]
    assert "SELECT 1 AS x" in polaris(f"views get v {where}")
    assert "View: " in polaris(f"views summarize v {where}")
    assert "Found" in polaris("find relations")
    assert "Found" in polaris(f"find --catalog {catalog} ns1.t")
    assert "Found" in polaris(f"find t --type table --catalog {catalog}")
    polaris(f"tables delete t {where}")
    polaris(f"views delete v {where}")
    assert polaris.lines(f"tables list {where}") == polaris.lines(f"views list {where}") == []


def test_policies(realm: Realm, tmp_path: Path) -> None:
    polaris, catalog = realm.polaris, realm.catalog("ruled", "ns1")
    make_relations(realm, catalog, "ns1")
    on, off = tmp_path / "on.json", tmp_path / "off.json"
    on.write_text('{"enable": true, "version": "2025-02-03", "config": {"target_file_size_bytes": 134217728}}')
    off.write_text('{"enable": false}')
    where, of_type = f"--catalog {catalog} --namespace ns1", "--policy-type system.data-compaction"
    applicable = f"policies list --applicable --catalog {catalog}"

    polaris(f"policies create {where} --policy-file {on} {of_type} --policy-description why p")
    assert polaris.one(f"policies get p {where}")["policy"] == {
        "policy-type": "system.data-compaction",
        "inheritable": True,
        "name": "p",
        "description": "why",
        "content": on.read_text(),
        "version": 0,
    }
    polaris(f"policies update {where} --policy-file {off} --policy-description why p")
    updated = polaris.one(f"policies get p {where}")["policy"]
    assert isinstance(updated, dict)
    assert (updated["version"], updated["content"]) == (1, '{"enable": false}')
    assert polaris.one(f"policies list {where}")["identifiers"] == [{"namespace": ["ns1"], "name": "p"}]
    polaris(f"policies attach {where} --attachment-type catalog p")
    polaris(f"policies attach {where} --attachment-type table-like --attachment-path ns1.t --parameters a=b p")
    assert [each["inherited"] for each in polaris.lines(applicable)] == [False]
    assert [each["inherited"] for each in polaris.lines(f"{applicable} --namespace ns1 {of_type}")] == [True]
    assert [each["inherited"] for each in polaris.lines(f"{applicable} --namespace ns1 --target-name t")] == [False]
    assert "  - p (Direct)" in polaris(f"tables summarize t {where}")
    polaris(f"policies detach {where} --attachment-type table-like --attachment-path ns1.t p")
    assert "PolicyInUseException" in polaris.refused(f"policies delete {where} p")
    polaris(f"policies delete {where} --detach-all p")
    assert polaris.lines(applicable) == []
    assert "NoSuchPolicyException" in polaris.refused(f"policies get p {where}")


def test_generic_tables(realm: Realm) -> None:
    polaris, catalog = realm.polaris, realm.catalog("generic", "ns1")
    where = f"--catalog {catalog} --namespace ns1"
    table = {"name": "g", "format": "delta", "base-location": f"{realm.location(catalog)}/ns1/g", "doc": "what it is"}
    realm.make_generic_table(catalog, "ns1", table)

    assert [each["name"] for each in polaris.lines(f"generic-tables list {where}")] == ["g"]
    assert polaris.one(f"generic-tables get g {where}")["table"] == {**table, "properties": {}}
    assert "is a generic table" in polaris.refused(f"tables get g {where}")
    polaris(f"generic-tables delete g {where}")
    assert polaris.lines(f"generic-tables list {where}") == []
    assert "NoSuchTableException" in polaris.refused(f"generic-tables get g {where}")


def test_privileges(realm: Realm) -> None:
    polaris, catalog = realm.polaris, realm.catalog("privileged", "a")
    make_relations(realm, catalog, "a")
    polaris(f"catalog-roles create --catalog {catalog} catalog_role")
    role = f"--catalog {catalog} --catalog-role catalog_role"
    listed = f"privileges list {role}"
    cases: dict[str, tuple[str, str, dict[str, object]]] = {
        "catalog": ("", "TABLE_CREATE", {"type": "catalog"}),
        "namespace": ("--namespace a", "TABLE_LIST", {"type": "namespace", "namespace": ["a"]}),
        "table": ("--namespace a --table t", "TABLE_DROP", {"type": "table", "namespace": ["a"], "tableName": "t"}),
        "view": ("--namespace a --view v", "VIEW_DROP", {"type": "view", "namespace": ["a"], "viewName": "v"}),
    }
    for kind, (on, privilege, shown) in cases.items():
        polaris(f"privileges {kind} grant {role} {on} {privilege}")
        polaris(f"privileges {kind} grant {role} {on} {privilege}")
        assert polaris.lines(listed) == [{**shown, "privilege": privilege}]
        polaris(f"privileges {kind} revoke {role} {on} --cascade {privilege}")
        assert polaris.lines(listed) == []
        assert polaris.refused(f"privileges {kind} revoke {role} {on} {privilege}").startswith(
            "BadRequestException: Operation failed: GRANT_NOT_FOUND"
        )

    for kind, (on, _, _) in cases.items():
        if kind != "view":
            polaris(f"privileges {kind} grant {role} {on} TABLE_READ_DATA")
    polaris(f"privileges catalog revoke {role} --cascade TABLE_READ_DATA")
    assert polaris.lines(listed) == []
    assert polaris.refused(f"privileges namespace grant {role} --namespace nowhere TABLE_LIST").startswith(
        "NoSuchNamespace"
    )


def test_what_a_role_is_granted_counts(realm: Realm) -> None:
    polaris, catalog = realm.polaris, realm.catalog("granted", "ns")
    user = as_principal(realm, polaris.one("principals create my_user"))
    assert "does not exist" in polaris.run("namespaces", "list", "--catalog", catalog, options=user).err
    polaris("principal-roles create my_role")
    polaris("principal-roles grant --principal my_user my_role")
    polaris(f"catalog-roles create --catalog {catalog} my_catalog_role")
    polaris(f"catalog-roles grant --catalog {catalog} --principal-role my_role my_catalog_role")
    polaris(f"privileges catalog grant --catalog {catalog} --catalog-role my_catalog_role CATALOG_MANAGE_CONTENT")

    ran = polaris.run("namespaces", "list", "--catalog", catalog, options=user)

    assert (ran.status, ran.out.split()) == (0, ['{"namespace":', '"ns"}'])


def test_setup_is_applied_and_exported(tmp_path: Path) -> None:
    location = (tmp_path / "tables" / "quickstart").as_uri() + "/"
    role: dict[str, object] = {
        "assign_to": ["quickstart_user_role"],
        "privileges": {"catalog": ["CATALOG_MANAGE_CONTENT"], "namespace": {"dev_namespace": ["TABLE_LIST"]}},
    }
    catalog = {
        "name": "quickstart_catalog",
        "storage_type": "file",
        "default_base_location": location,
        "allowed_locations": [location],
        "roles": {"quickstart_catalog_role": role},
        "namespaces": ["dev_namespace"],
        "policies": {
            "compaction": {
                "namespace": "dev_namespace",
                "type": "system.data-compaction",
                "description": "why",
                "content": {"enable": True},
                "attach": [{"type": "namespace", "path": "dev_namespace"}, {"type": "catalog"}],
            }
        },
    }
    wanted = {
        "principals": {"quickstart_user": {"roles": ["quickstart_user_role"]}},
        "principal_roles": ["quickstart_user_role"],
        "catalogs": [catalog],
    }
    file = tmp_path / "setup-config.yaml"
    file.write_text(yaml.safe_dump(wanted))
    with served(tmp_path) as realm:
        polaris = realm.polaris
        assert polaris.run("setup", "apply", str(file), "--dry-run").status == 0
        assert polaris.refused("catalogs get quickstart_catalog").startswith("NotFoundException")

        for _ in range(2):  # the second time everything is there
            assert polaris.run("setup", "apply", str(file)).status == 0

        applied = "policies list --applicable --catalog quickstart_catalog"
        for target in ("", " --namespace dev_namespace"):
            assert [each["name"] for each in polaris.lines(applied + target)] == ["compaction"]
        granted = "privileges list --catalog quickstart_catalog --catalog-role quickstart_catalog_role"
        assert {str(each["privilege"]) for each in polaris.lines(granted)} == {"CATALOG_MANAGE_CONTENT", "TABLE_LIST"}
        polaris(
            "privileges namespace revoke --catalog quickstart_catalog --catalog-role quickstart_catalog_role "
            "--namespace dev_namespace TABLE_LIST"
        )
        exported = yaml.safe_load(polaris("setup export"))
    assert exported["principals"]["quickstart_user"]["roles"] == ["quickstart_user_role"]
    (shown,) = [each for each in exported["catalogs"] if each["name"] == "quickstart_catalog"]
    assert shown["default_base_location"] == location
    assert [(each["name"], each["type"], each["description"]) for each in shown["policies"]] == [
        ("compaction", "system.data-compaction", "why")
    ]
    assert shown["roles"]["quickstart_catalog_role"] == role | {"privileges": {"catalog": ["CATALOG_MANAGE_CONTENT"]}}
