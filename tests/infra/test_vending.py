"""Who reaches the files of tables where the catalog vends credentials: a plan's policies judge requests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pytest

from arco_catalog.state.locations import RESERVED_FOLDERS, Location
from arco_catalog.vending.s3_policy import session_policy
from arco_catalog.vending.storage_config import AwsStorage
from tests.infra.deployments import ACCEPTED, COLLECTOR, KEY, OPERATOR, READER, VENDING, WRITER
from tests.infra.evaluation import Policies, Request
from tests.infra.policies import Statement, statements, to_be_written
from tests.infra.terraform import Plan

ACCOUNT = "arn:aws:iam::123456789012"
ENGINE, ADMIN = f"{ACCOUNT}:role/engine", f"{ACCOUNT}:role/admin"
FUNCTIONS = ("api", "reconcile", "work", "collect")
EVERYTHING = Statement("admin", "", "Allow", ("*",), ("*",), {})
FILE_ACTIONS = (
    *("s3:GetObject", "s3:GetObjectVersion", "s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"),
    *("s3:PutObjectAcl", "s3:PutObjectTagging", "s3:AbortMultipartUpload", "s3:RestoreObject"),
)
LISTS = ("s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads")
OWN_BUCKET = [name for name in VENDING if "bucket" not in ACCEPTED[name]]

deployment = pytest.mark.parametrize("deployment", VENDING)
with_bucket = pytest.mark.parametrize("deployment", OWN_BUCKET)


@dataclass(frozen=True)
class Deployment:
    """A deployment of the plan, with the ARNs of its principals and the names of its places."""

    plan: Plan
    name: str

    @cached_property
    def bucket(self) -> str:
        return str(ACCEPTED[self.name].get("bucket", "lake-123456789012-us-east-1"))

    @cached_property
    def root(self) -> str:
        """The folder of the first realm, with a slash at its end unless it is the bucket."""
        given = ACCEPTED[self.name]
        realms = given.get("realm") or [""]
        assert isinstance(realms, list)
        return "".join(f"{folder}/" for folder in (given.get("prefix", ""), realms[0]) if folder)

    @cached_property
    def folder(self) -> str:
        """The store's folder in the bucket, likewise."""
        prefix = ACCEPTED[self.name].get("prefix")
        return f"{prefix}/" if prefix else ""

    def key(self, rest: str) -> str:
        """An object below the realm's folder."""
        return f"arn:aws:s3:::{self.bucket}/{self.root}{rest}"

    @property
    def tables(self) -> list[str]:
        folders = [f"{self.root}main/warehouse/ns/t-01J", f"{self.root}catalogs/sales/ns/t"]
        found = [f"arn:aws:s3:::{self.bucket}/{folder}/data/a.parquet" for folder in folders]
        elsewhere = "arn:aws:s3:::elsewhere/tables/t/data/a.parquet"
        return [*found, *([elsewhere] if ACCEPTED[self.name].get("allowed_locations") else [])]

    @property
    def state(self) -> list[str]:
        return [
            self.key("main/_catalog/core/manifest.json"),
            self.key("_realm/core/manifest.json"),
            self.key("_realm/catalogs/01J/_catalog/iceberg_pointers/01J.json"),
            f"arn:aws:s3:::{self.bucket}/{self.folder}_probe/01J/present",
        ]

    def role(self, address: str) -> list[Statement]:
        """What a policy of a role says."""
        found = next(found for found in self.plan.deployment(self.name) if found.address == address)
        return statements(address, found.values["policy"])

    def function(self, name: str) -> list[Statement]:
        return self.role(f'aws_iam_role_policy.function["{name}"]')

    @property
    def vending(self) -> list[Statement]:
        return self.role("aws_iam_role_policy.vending[0]")

    def policy(self, name: str) -> list[Statement]:
        """What a document of the module says, be it a resource's or for somebody else to attach."""
        values = self.plan.data(self.name, f"data.aws_iam_policy_document.{name}")
        if values.get("json") is None:
            return to_be_written(name, values["statement"])
        return statements(name, values["json"])

    @property
    def bucket_policy(self) -> list[Statement]:
        return self.policy("bucket")

    def allows(
        self,
        principal: str,
        own: Sequence[Statement],
        action: str,
        resource: str,
        *,
        session: Sequence[Statement] | None = None,
        prefix: str | None = None,
    ) -> bool:
        """Whether the principal with these policies may do this to the bucket or an object in it; a list has a
        prefix, or none."""
        context = {} if prefix is None else {"s3:prefix": prefix}
        bucket_policy = self.bucket_policy if resource.startswith(f"arn:aws:s3:::{self.bucket}") else []
        return Policies(own, bucket_policy, session).allow(Request(principal, action, resource, context))


@pytest.fixture
def deployed(plan: Plan, deployment: str) -> Deployment:
    return Deployment(plan, deployment)


def arn(name: str) -> str:
    """Of a role that the module makes."""
    return f"{ACCOUNT}:role/lake-{name}"


def lists(deployed: Deployment, principal: str, own: Sequence[Statement], prefix: str | None) -> bool:
    bucket = f"arn:aws:s3:::{deployed.bucket}"
    return any(deployed.allows(principal, own, action, bucket, prefix=prefix) for action in LISTS)


# Engines


@deployment
def test_the_policy_for_engines_has_no_right_on_any_file(deployed: Deployment) -> None:
    own = deployed.policy("engine")
    files = [*deployed.tables, *deployed.state]

    assert [
        (action, file)
        for file in files
        for action in FILE_ACTIONS
        if Policies(own).allow(Request(ENGINE, action, file))
    ] == []
    assert not lists(deployed, ENGINE, own, None)
    assert not any(action.startswith(("s3:", "kms:", "sts:")) for statement in own for action in statement.actions)


@with_bucket
def test_who_may_do_everything_by_policies_of_its_own_reaches_no_file(deployed: Deployment) -> None:
    """An engine's role from before, or one that is everybody's administrator."""
    assert [
        (action, file)
        for file in [*deployed.tables, *deployed.state, deployed.key("anything")]
        for action in FILE_ACTIONS
        if deployed.allows(ADMIN, [EVERYTHING], action, file)
    ] == []
    for prefix in (deployed.root, f"{deployed.root}main/warehouse/", f"{deployed.root}_realm/core/"):
        if prefix:
            assert not lists(deployed, ADMIN, [EVERYTHING], prefix)


def test_terraform_may_still_ask_whether_the_bucket_is_there(plan: Plan) -> None:
    """HeadBucket takes `s3:ListBucket`, and has no prefix."""
    assert lists(Deployment(plan, "signed"), ADMIN, [EVERYTHING], None)


@pytest.mark.parametrize("statement", ["TablesAreReachedByCredentialsOfTheCatalogOnly", "RealmIsTheCatalogsOnly"])
def test_without_a_statement_of_the_bucket_s_policy_somebody_would_get_in(plan: Plan, statement: str) -> None:
    """So the tests above are not true whatever the policy says."""
    deployed = Deployment(plan, "signed")
    rest = [each for each in deployed.bucket_policy if each.id != statement]
    realm, table = deployed.key("_realm/core/manifest.json"), deployed.tables[0]
    who, file = (ADMIN, table) if statement.startswith("Tables") else (READER, realm)

    assert not deployed.allows(who, [EVERYTHING], "s3:GetObject", file)
    assert Policies([EVERYTHING], rest).allow(Request(who, "s3:GetObject", file))


def test_without_vending_engines_keep_their_rights_on_tables_alone(plan: Plan) -> None:
    deployed = Deployment(plan, "own-files")
    own = deployed.policy("engine")

    assert all(deployed.allows(ENGINE, own, "s3:PutObject", file) for file in deployed.tables)
    assert not any(deployed.allows(ENGINE, own, "s3:GetObject", file) for file in deployed.state)
    assert not [found for found in plan.deployment("own-files") if "vending" in found.address]


# The role that credentials are of


def vended(deployed: Deployment, folder: str, *, write: bool) -> list[Statement]:
    """The session policy that the catalog makes for a table."""
    config = AwsStorage(role_arn=arn("vending"), region="us-east-1")
    location = Location.parse(f"s3://{deployed.bucket}/{folder}")
    return statements("session", session_policy([location], config, write=write))


@deployment
def test_a_vended_credential_reaches_its_table_and_nothing_besides(deployed: Deployment) -> None:
    who, own = arn("vending"), deployed.vending
    folder = f"{deployed.root}main/warehouse/ns/t-01J"
    reader, writer = (vended(deployed, folder, write=write) for write in (False, True))
    table, *others = deployed.tables

    assert deployed.allows(who, own, "s3:GetObject", table, session=reader)
    assert not deployed.allows(who, own, "s3:PutObject", table, session=reader)
    assert deployed.allows(who, own, "s3:PutObject", table, session=writer)
    assert deployed.allows(who, own, "s3:DeleteObject", table, session=writer)
    beside = deployed.key("main/warehouse/ns/t-01J2/data/a.parquet")
    for file in (*others, beside, *deployed.state):
        assert not any(deployed.allows(who, own, action, file, session=writer) for action in FILE_ACTIONS)


@deployment
def test_the_vending_role_reaches_every_table_that_there_may_be(deployed: Deployment) -> None:
    who, own = arn("vending"), deployed.vending

    for file in deployed.tables:
        for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"):
            assert deployed.allows(who, own, action, file)
    bucket = f"arn:aws:s3:::{deployed.bucket}"
    assert deployed.allows(who, own, "s3:ListBucket", bucket, prefix=f"{deployed.root}main/warehouse/ns/t-01J/")


@deployment
@pytest.mark.parametrize("more", [[], [EVERYTHING]], ids=["its-own", "and-everything-else"])
def test_the_vending_role_never_reaches_state(deployed: Deployment, more: list[Statement]) -> None:
    """Whatever the session's policy says, and whatever somebody attaches to the role."""
    who, own = arn("vending"), [*deployed.vending, *more]
    nested = [
        deployed.key(f"{above}{folder}/core/a.json")
        for folder in RESERVED_FOLDERS
        for above in ("", "main/", "main/warehouse/ns/t/", "catalogs/sales/")
    ]

    for file in [*deployed.state, *nested]:
        assert not any(deployed.allows(who, own, action, file) for action in FILE_ACTIONS), file
    for folder in RESERVED_FOLDERS:
        for prefix in (folder, f"{folder}/core/", f"{deployed.root}main/{folder}", f"{deployed.root}main/{folder}/"):
            assert not lists(deployed, who, own, prefix)


@deployment
def test_the_vending_role_lists_nothing_without_a_prefix_inside_tables(deployed: Deployment) -> None:
    for prefix in (None, "", deployed.root, f"{deployed.root}main/", f"{deployed.root}main/ware"):
        assert not lists(deployed, arn("vending"), deployed.vending, prefix)


@deployment
def test_the_vending_role_does_nothing_but_read_and_write_files(deployed: Deployment) -> None:
    own = deployed.vending

    for action in ("sts:AssumeRole", "iam:PutRolePolicy", "s3:PutBucketPolicy", "secretsmanager:GetSecretValue"):
        assert not Policies(own).allow(Request(arn("vending"), action, "arn:aws:x:::any"))
    allowed = {action for statement in own if statement.allows for action in statement.actions}
    assert {action.partition(":")[0] for action in allowed} <= {"s3", "kms"}


@deployment
def test_only_the_api_takes_on_the_vending_role(deployed: Deployment) -> None:
    role = next(
        found for found in deployed.plan.deployment(deployed.name) if found.address == "aws_iam_role.vending[0]"
    )
    trust = statements("trust", role.values["assume_role_policy"])
    asking = [*(arn(name) for name in FUNCTIONS), arn("schedule"), arn("spark"), arn("vending"), ENGINE, ADMIN, READER]

    assert [who for who in asking if Policies([], trust).allow(Request(who, "sts:AssumeRole", arn("vending")))] == [
        arn("api")
    ]
    assert {each for statement in trust for each in statement.principals} == {arn("api")}
    assert not any(statement.conditions for statement in trust)
    assert role.values["max_session_duration"] == 3600


def test_the_key_is_used_by_way_of_s3_only(plan: Plan) -> None:
    deployed = Deployment(plan, "signed")

    def may(action: str, via: str) -> bool:
        request = Request(arn("vending"), action, KEY, {"kms:ViaService": via} if via else {})
        return Policies(deployed.vending).allow(request)

    for action in ("kms:Decrypt", "kms:GenerateDataKey"):
        assert may(action, "s3.us-east-1.amazonaws.com")
        assert not may(action, "")
        assert not may(action, "ec2.us-east-1.amazonaws.com")
    assert not any(
        action.startswith("kms:")
        for statement in Deployment(plan, "signed-url").vending
        for action in statement.actions
    )


# The functions


@deployment
def test_the_api_takes_on_the_vending_role_and_no_other(deployed: Deployment) -> None:
    own = deployed.function("api")
    roles = [arn(name) for name in ("vending", *FUNCTIONS, "schedule", "spark")]

    assert [role for role in roles if Policies(own).allow(Request(arn("api"), "sts:AssumeRole", role))] == [
        arn("vending")
    ]


@deployment
@pytest.mark.parametrize("name", ["reconcile", "work", "collect"])
def test_who_works_beside_requests_takes_on_no_role_and_writes_no_grant(deployed: Deployment, name: str) -> None:
    own, who = deployed.function(name), arn(name)
    manifest, state = deployed.key("_realm/core/manifest.json"), deployed.key("_realm/catalogs/01J/_catalog/events/a")

    assert not any(Policies(own).allow(Request(who, "sts:AssumeRole", role)) for role in (arn("vending"), arn("api")))
    assert deployed.allows(who, own, "s3:GetObject", manifest)
    assert deployed.allows(who, own, "s3:PutObject", state)
    for more in ([], [EVERYTHING]) if "bucket" not in ACCEPTED[deployed.name] else ([],):
        # The collector moves HEAD before what led to it goes (docs/design/collection.md#rule-9).
        assert name == "collect" or not deployed.allows(who, [*own, *more], "s3:PutObject", manifest)
        assert not deployed.allows(who, [*own, *more], "s3:DeleteObject", manifest)


@deployment
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_reaches_a_data_file_but_to_purge_it_or_widens_what_it_may(deployed: Deployment, name: str) -> None:
    own, who = deployed.function(name), arn(name)
    bucket = f"arn:aws:s3:::{deployed.bucket}"
    widening = [
        *(("iam:PutRolePolicy", role) for role in (who, arn("vending"), arn("api"))),
        *(("iam:AttachRolePolicy", role) for role in (who, arn("vending"))),
        *(("iam:UpdateAssumeRolePolicy", role) for role in (who, arn("vending"))),
        *(("iam:PassRole", role) for role in (who, arn("vending"))),
        *((action, bucket) for action in ("s3:PutBucketPolicy", "s3:DeleteBucketPolicy", "s3:PutBucketAcl")),
        *(("lambda:UpdateFunctionConfiguration", f"{FUNCTION_ARN}-{each}") for each in FUNCTIONS),
        *(("lambda:UpdateFunctionCode", f"{FUNCTION_ARN}-{each}") for each in FUNCTIONS),
        *((action, KEY) for action in ("kms:PutKeyPolicy", "kms:CreateGrant")),
        *((action, SECRET) for action in ("secretsmanager:PutSecretValue", "secretsmanager:PutResourcePolicy")),
        ("sts:AssumeRole", f"{ACCOUNT}:role/anything"),
    ]

    assert [each for each in widening if Policies(own).allow(Request(who, *each))] == []
    purges = ["s3:GetObject", "s3:DeleteObject"] if name == "work" else []
    for file in deployed.tables:
        assert [action for action in FILE_ACTIONS if deployed.allows(who, own, action, file)] == purges


FUNCTION_ARN = "arn:aws:lambda:us-east-1:123456789012:function:lake"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake-token-key-AbCdEf"


@deployment
def test_the_api_keeps_the_realm_and_deletes_nothing_of_it(deployed: Deployment) -> None:
    own, who = deployed.function("api"), arn("api")
    manifest = deployed.key("_realm/core/manifest.json")

    assert all(deployed.allows(who, own, action, manifest) for action in ("s3:GetObject", "s3:PutObject"))
    assert not deployed.allows(who, [*own, EVERYTHING], "s3:DeleteObject", manifest)
    assert lists(deployed, who, own, f"{deployed.root}_realm/catalogs/01J/_catalog/")


# Roles with rights of their own


@pytest.mark.parametrize(
    ("kind", "who", "may"),
    [
        ("reader", READER, {"s3:GetObject"}),
        ("writer", WRITER, {"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}),
    ],
)
def test_roles_with_rights_of_their_own_reach_tables_and_no_state(
    plan: Plan, kind: str, who: str, may: set[str]
) -> None:
    deployed = Deployment(plan, "signed")
    own = deployed.role(f'aws_iam_policy.files["{kind}"]')
    [attached] = [found.values for found in plan.deployment("signed") if f'["{kind} ' in found.address]

    assert who.endswith(f"/{attached['role']}")
    for file in deployed.tables:
        assert {action for action in FILE_ACTIONS if deployed.allows(who, own, action, file)} == may
    for file in deployed.state:
        assert not any(deployed.allows(who, [*own, EVERYTHING], action, file) for action in FILE_ACTIONS)


def test_a_policy_attached_to_somebody_who_is_not_named_opens_nothing(plan: Plan) -> None:
    deployed = Deployment(plan, "signed")
    own = deployed.role('aws_iam_policy.files["writer"]')

    assert not any(deployed.allows(ENGINE, own, "s3:GetObject", file) for file in deployed.tables)


@pytest.mark.parametrize("who", [OPERATOR, COLLECTOR])
def test_operators_and_collectors_are_let_past_the_bucket_s_policy(plan: Plan, who: str) -> None:
    deployed = Deployment(plan, "signed")

    assert all(deployed.allows(who, [EVERYTHING], "s3:GetObject", file) for file in [*deployed.tables, *deployed.state])
    manifest = deployed.key("_realm/core/manifest.json")
    assert deployed.allows(who, [EVERYTHING], "s3:PutObject", manifest) == (who == OPERATOR)
    assert deployed.allows(who, [EVERYTHING], "s3:DeleteObject", manifest) == (who == COLLECTOR)


# The key that signs tokens


def reads_key(deployed: Deployment, own: Sequence[Statement], who: str, secret: str) -> bool:
    made = secret == SECRET
    action = "ssm:GetParameter" if ":ssm:" in secret else "secretsmanager:GetSecretValue"
    return Policies(own, deployed.policy("token_key") if made else ()).allow(Request(who, action, secret))


@pytest.mark.parametrize(
    "deployment", [name for name, given in ACCEPTED.items() if "internal" in str(given.get("auth"))]
)
def test_the_api_reads_the_key_and_no_other_role_does(deployed: Deployment) -> None:
    secret = str(ACCEPTED[deployed.name].get("token_key_secret", SECRET))
    readers = [name for name in FUNCTIONS if reads_key(deployed, deployed.function(name), arn(name), secret)]

    assert readers == ["api"]
    assert not reads_key(deployed, deployed.function("api"), arn("api"), f"{secret}2")
    assert not reads_key(deployed, deployed.policy("engine"), ENGINE, secret)


def test_a_key_that_was_made_is_read_by_nobody_else_whatever_its_own_policies_say(plan: Plan) -> None:
    deployed = Deployment(plan, "clients")

    assert reads_key(deployed, [EVERYTHING], arn("api"), SECRET)
    assert reads_key(deployed, [EVERYTHING], OPERATOR, SECRET)
    for who in (arn("reconcile"), arn("work"), arn("vending"), ENGINE, ADMIN):
        assert not reads_key(deployed, [EVERYTHING], who, SECRET)


def test_the_key_is_in_no_plan(plan: Plan) -> None:
    [version] = [found for found in plan.deployment("clients") if found.type == "aws_secretsmanager_secret_version"]

    assert version.values["secret_string_wo"] is None
    assert version.values.get("secret_string") is None
    assert version.values["secret_string_wo_version"] == 1


@pytest.mark.parametrize("deployment", [name for name in ACCEPTED if name not in VENDING and name != "own-files"])
def test_without_a_realm_there_is_nothing_of_it(deployed: Deployment) -> None:
    addresses = [found.address for found in deployed.plan.deployment(deployed.name)]
    said = [statement.id for name in FUNCTIONS for statement in deployed.function(name)]

    assert not [address for address in addresses if "vending" in address or "token_key" in address]
    assert not {"VendCredentials", "WriteRealm", "ReadRealm", "TokenKey"} & {*said}
    assert {statement.id for statement in deployed.bucket_policy} == {
        *("OnlyOverTLS", "StateIsDeletedByTheCollectorOnly", "StateIsWrittenByTheCatalogOnly"),
        *("PurgesDeleteTablesAndHintsOnly", "TheApiDeletesMetadataFilesAndProposalsOnly"),
        "CollectionDeletesNoManifest",
    }


def test_the_evaluation_knows_what_a_denial_is() -> None:
    """A denial wins over whatever allows, and one whose condition does not hold says nothing."""
    request = Request(ENGINE, "s3:GetObject", "arn:aws:s3:::b/a")
    deny = replace(EVERYTHING, effect="Deny", conditions={"ArnNotEquals": {"aws:PrincipalArn": [ADMIN]}})

    assert Policies([EVERYTHING]).allow(request)
    assert not Policies([]).allow(request)
    assert not Policies([EVERYTHING], [deny]).allow(request)
    assert Policies([EVERYTHING], [deny]).allow(replace(request, principal=ADMIN))
    assert not Policies([EVERYTHING], session=[]).allow(request)
