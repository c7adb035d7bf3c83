"""Policies over HTTP: what they say, what they are attached to, and what applies."""

from typing import cast

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.policies.policies import MAX_CONTENT_BYTES
from tests.support.http_service import POLARIS_DB, HttpService
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import renaming

POLICIES = f"{POLARIS_DB}/policies"
APPLICABLE = "/polaris/v1/wh/applicable-policies"
DB = "/v1/wh/namespaces/db"
ENABLED = '{"enable": true}'
COMPACTION = "system.data-compaction"

CATALOG: JsonObject = {"type": "catalog"}
NAMESPACE: JsonObject = {"type": "namespace", "path": ["db"]}
TABLE: JsonObject = {"type": "table-like", "path": ["db", "t"]}


async def applies(client: Client, query: str = "") -> list[tuple[str, bool]]:
    """Names of what applies, and whether it is inherited."""
    answer = await client.get(f"{APPLICABLE}{query}")
    assert answer.status == 200, answer.body
    found = cast(list[JsonObject], answer.json["applicable-policies"])
    return [(str(policy["name"]), policy["inherited"] is True) for policy in found]


async def attach(client: Client, name: str, target: JsonObject, **more: object) -> Answer:
    return await client.put(f"{POLICIES}/{name}/mappings", {"target": target, **more})


async def detach(client: Client, name: str, target: JsonObject) -> Answer:
    return await client.post(f"{POLICIES}/{name}/mappings", {"target": target})


class TestContent:
    async def test_it_comes_back_as_it_was_created(self, service: HttpService) -> None:
        body: JsonObject = {"name": "p", "type": COMPACTION, "description": "why", "content": ENABLED}

        created = await service.client.post(POLICIES, body)
        loaded = await service.serve().get(f"{POLICIES}/p")

        assert created.status == 200
        assert (
            created.json
            == loaded.json
            == {
                "policy": {
                    "policy-type": COMPACTION,
                    "inheritable": True,
                    "name": "p",
                    "description": "why",
                    "content": ENABLED,
                    "version": 0,
                }
            }
        )

    async def test_a_name_is_taken_once_and_besides_what_tables_are_called(self, service: HttpService) -> None:
        await service.policy("t")

        again = await service.client.post(POLICIES, {"name": "t", "type": "ours"})

        assert (again.status, again.error_type) == (409, "AlreadyExistsException")
        assert (await service.client.get(f"{DB}/tables/t")).status == 200

    @pytest.mark.parametrize("name", ["", " a", "a b", "a.b", "a/b", "é", "a" * 256, "a@b", "a\n"])
    async def test_a_name_has_letters_digits_hyphens_and_underscores(self, client: Client, name: str) -> None:
        refused = await client.post(POLICIES, {"name": name, "type": "ours"})

        assert (refused.status, refused.error_type) == (400, "BadRequestException")

    @pytest.mark.parametrize("spelt", ["system.data_compaction", "system.data-compaction"])
    async def test_predefined_types_are_returned_with_hyphens_in_any_spelling(
        self, service: HttpService, spelt: str
    ) -> None:
        created = await service.policy("p", of=spelt)
        listed = await service.client.get(f"{POLICIES}?policyType={spelt}")

        assert cast(JsonObject, created.json["policy"])["policy-type"] == COMPACTION
        assert listed.json["identifiers"] == [{"namespace": ["db"], "name": "p"}]

    async def test_a_predefined_type_must_be_one_that_there_is(self, client: Client) -> None:
        refused = await client.post(POLICIES, {"name": "p", "type": "system.row-filter", "content": ENABLED})

        assert refused.status == 400
        assert "system.snapshot-expiry" in refused.message

    @pytest.mark.parametrize("spelt", ["System.data-compaction", "SYSTEM.DATA_COMPACTION", "system.Snapshot-Expiry"])
    async def test_a_predefined_type_in_other_letters_is_not_taken_for_a_users_own(
        self, client: Client, spelt: str
    ) -> None:
        refused = await client.post(POLICIES, {"name": "p", "type": spelt, "content": ENABLED})

        assert (refused.status, refused.error_type) == (400, "BadRequestException")
        assert "Unknown policy type" in refused.message

    async def test_content_of_another_type_is_kept_as_it_is(self, client: Client) -> None:
        created = await client.post(POLICIES, {"name": "p", "type": "ours", "content": "SELECT 1"})

        policy = cast(JsonObject, created.json["policy"])
        assert (policy["content"], policy["inheritable"]) == ("SELECT 1", False)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (None, "request.content"),
            ("", "request.content"),
            ("{", "request.content: not JSON"),
            ("[]", "content: expected an object"),
            ("{}", "missing required field 'enable'"),
            ('{"enable": null}', "content.enable: expected a boolean, found null"),
            ('{"enable": "true"}', "content.enable: expected a boolean, found a string"),
            ('{"enable": true, "version": "2024-01-01"}', "content.version"),
            ('{"enable": true, "extra": 1}', "content.extra"),
            ('{"enable": true, "config": {"a": []}}', "content.config['a']"),
            (
                '{"enable": true, "max_orphan_file_age_in_days": -1}',
                "content.max_orphan_file_age_in_days: expected a number of at least 0, found -1",
            ),
            ('{"enable": true, "max_orphan_file_age_in_days": "3"}', "content.max_orphan_file_age_in_days"),
            ('{"enable": true, "locations": ["a", 1]}', "content.locations[1]: expected a string"),
        ],
    )
    async def test_an_error_in_content_names_its_field(self, client: Client, content: str | None, reason: str) -> None:
        body = {"name": "p", "type": "system.orphan-file-removal", "content": content}

        refused = await client.post(POLICIES, body)

        assert (refused.status, refused.error_type) == (400, "BadRequestException")
        assert reason in refused.message

    async def test_all_that_the_schemas_have_is_taken(self, client: Client) -> None:
        content = (
            '{"version": "2025-02-03", "enable": true, "max_orphan_file_age_in_days": 30, '
            '"locations": ["s3://bucket/t"], "config": {"a": "b", "c": 1.5, "d": false}}'
        )

        created = await client.post(POLICIES, {"name": "p", "type": "system.orphan-file-removal", "content": content})

        assert cast(JsonObject, created.json["policy"])["content"] == content

    async def test_it_is_bounded(self, client: Client) -> None:
        for field in ("content", "description"):
            body = {"name": "p", "type": "ours", field: "x" * (MAX_CONTENT_BYTES + 1)}
            refused = await client.post(POLICIES, body)
            assert refused.status == 400
            assert f"request.{field}" in refused.message


class TestVersions:
    async def test_each_change_is_the_next_version(self, service: HttpService) -> None:
        await service.policy("p")

        changed = await service.client.put(
            f"{POLICIES}/p", {"current-policy-version": 0, "content": "new", "description": "why"}
        )
        same = await service.client.put(
            f"{POLICIES}/p", {"current-policy-version": 1, "content": "new", "description": "why"}
        )

        policy = cast(JsonObject, changed.json["policy"])
        assert (policy["version"], policy["content"], policy["description"]) == (1, "new", "why")
        assert same.json == changed.json == (await service.client.get(f"{POLICIES}/p")).json

    @pytest.mark.parametrize("version", [0, 2, 7])
    async def test_another_version_than_it_has_is_refused(self, service: HttpService, version: int) -> None:
        await service.policy("p")
        first = await service.client.put(f"{POLICIES}/p", {"current-policy-version": 0, "content": "new"})
        assert first.status == 200

        refused = await service.client.put(f"{POLICIES}/p", {"current-policy-version": version, "content": "newer"})

        assert (refused.status, refused.error_type) == (409, "PolicyVersionMismatchException")
        assert "is at version 1" in refused.message

    async def test_a_change_made_for_a_dropped_policy_does_not_fit_its_successor(self, service: HttpService) -> None:
        await service.policy("p")
        assert (await service.client.put(f"{POLICIES}/p", {"current-policy-version": 0, "content": "x"})).status == 200
        assert (await service.client.delete(f"{POLICIES}/p")).status == 204
        made = cast(JsonObject, (await service.policy("p")).json["policy"])

        stale = [
            await service.client.put(f"{POLICIES}/p", {"current-policy-version": version, "content": "y"})
            for version in (0, 1)
        ]
        fresh = await service.client.put(f"{POLICIES}/p", {"current-policy-version": made["version"], "content": "y"})

        assert made["version"] == 2
        assert [answer.error_type for answer in stale] == ["PolicyVersionMismatchException"] * 2
        assert fresh.status == 200

    async def test_the_version_is_required_and_the_content_is_checked(self, service: HttpService) -> None:
        await service.policy("p", of=COMPACTION)

        unsaid = await service.client.put(f"{POLICIES}/p", {"content": ENABLED})
        wrong = await service.client.put(f"{POLICIES}/p", {"current-policy-version": 0, "content": "new"})
        missing = await service.client.put(f"{POLICIES}/q", {"content": ENABLED})

        assert (unsaid.status, wrong.status) == (400, 400)
        assert (missing.status, missing.error_type) == (404, "NoSuchPolicyException")


class TestAttachments:
    async def test_the_nearest_of_a_type_is_inherited(self, service: HttpService) -> None:
        client = service.client
        for name, target in (("far", CATALOG), ("near", NAMESPACE), ("own", TABLE)):
            await service.policy(name, target, of=COMPACTION)
        await service.policy("expiry", CATALOG, of="system.snapshot-expiry")
        await service.namespace("other", "other")

        assert await applies(client) == [("far", False), ("expiry", False)]
        assert await applies(client, "?namespace=other") == [("far", True), ("expiry", True)]
        assert await applies(client, "?namespace=db") == [("near", False), ("expiry", True)]
        assert await applies(client, "?namespace=db&target-name=t") == [("own", False), ("expiry", True)]
        assert await applies(client, f"?namespace=db&target-name=t&policyType={COMPACTION}") == [("own", False)]
        assert (await detach(client, "own", TABLE)).status == 204
        assert await applies(client, "?namespace=db&target-name=t&policyType=") == [("near", True), ("expiry", True)]

    async def test_one_is_inherited_along_nested_namespaces(self, service: HttpService) -> None:
        await service.namespace("db%1Fin", "db", "in")
        await service.policy("p", NAMESPACE, of=COMPACTION)

        assert await applies(service.client, "?namespace=db%1Fin") == [("p", True)]

    async def test_others_are_the_targets_alone_and_may_be_many(self, service: HttpService) -> None:
        for name in ("a", "b", "c"):
            await service.policy(name, TABLE, CATALOG)

        assert await applies(service.client, "?namespace=db&target-name=t") == [
            ("a", False),
            ("b", False),
            ("c", False),
        ]
        assert await applies(service.client, "?namespace=db") == []

    async def test_only_one_of_an_inheritable_type_can_be_attached(self, service: HttpService) -> None:
        await service.policy("p", TABLE, of=COMPACTION)
        await service.policy("q", of=COMPACTION)

        again = await attach(service.client, "p", TABLE, parameters={"a": "b"})
        other = await attach(service.client, "q", TABLE)

        assert again.status == 204
        assert (other.status, other.error_type) == (409, "ConflictPolicyAttachmentException")

    async def test_they_go_with_what_is_renamed_dropped_and_restored(self, service: HttpService) -> None:
        client = service.client
        await service.policy("p", TABLE, of=COMPACTION)
        assert (await client.post("/v1/wh/tables/rename", renaming("t", "u"))).status == 204
        await service.table("t")

        assert await applies(client, "?namespace=db&target-name=u") == [("p", False)]
        assert await applies(client, "?namespace=db&target-name=t") == []
        assert (await client.delete(f"{POLICIES}/p")).error_type == "PolicyInUseException"
        assert (await client.delete(f"{DB}/tables/u")).status == 204
        assert (await client.get(f"{APPLICABLE}?namespace=db&target-name=u")).status == 404
        assert (await client.post(f"{DB}/tables/u/undrop", {})).status == 204
        assert await applies(client, "?namespace=db&target-name=u") == [("p", False)]

    async def test_a_policy_on_nothing_but_what_was_dropped_can_be_dropped_and_stays_away(
        self, service: HttpService
    ) -> None:
        client = service.client
        await service.policy("p", TABLE, of=COMPACTION)
        assert (await client.delete(f"{DB}/tables/t")).status == 204

        assert (await client.delete(f"{POLICIES}/p")).status == 204
        assert (await client.post(f"{DB}/tables/t/undrop", {})).status == 204
        assert await applies(client, "?namespace=db&target-name=t") == []
        await service.policy("p", TABLE, of=COMPACTION)

    async def test_a_policy_that_is_attached_is_dropped_only_with_all_its_attachments(
        self, service: HttpService
    ) -> None:
        client = service.client
        await service.policy("p", CATALOG, NAMESPACE, TABLE, of=COMPACTION)

        refused = await client.delete(f"{POLICIES}/p")
        dropped = await client.delete(f"{POLICIES}/p?detach-all=true")

        assert (refused.status, refused.error_type, dropped.status) == (400, "PolicyInUseException", 204)
        assert await applies(client, "?namespace=db&target-name=t") == []
        assert (await client.get(f"{POLICIES}/p")).error_type == "NoSuchPolicyException"

    async def test_a_dropped_namespace_leaves_nothing_attached_and_one_with_policies_stays(
        self, service: HttpService
    ) -> None:
        client = service.client
        await service.namespace("other", "other")
        await service.policy("p", {"type": "namespace", "path": ["other"]}, of=COMPACTION)

        kept = await client.delete(DB)
        dropped = await client.delete("/v1/wh/namespaces/other")
        await service.namespace("other", "other")

        assert (kept.status, dropped.status) == (409, 204)
        assert await applies(client, "?namespace=other") == []
        assert (await client.delete(f"{DB}/tables/t")).status == 204
        assert (await client.delete(DB)).error_type == "NamespaceNotEmptyException"
        assert (await client.delete(f"{POLICIES}/p")).status == 204
        assert (await client.delete(DB)).status == 204

    async def test_a_missing_object_is_named(self, service: HttpService) -> None:
        client = service.client
        await service.policy("p")
        nowhere: JsonObject = {"type": "namespace", "path": ["nowhere"]}
        nothing: JsonObject = {"type": "table-like", "path": ["db", "nothing"]}

        for send in (attach, detach):
            assert (await send(client, "q", TABLE)).error_type == "NoSuchPolicyException"
            assert (await send(client, "p", nowhere)).error_type == "NoSuchNamespaceException"
            missing = await send(client, "p", nothing)
            assert (missing.error_type, missing.message) == (
                "NoSuchTableException",
                "Table or view does not exist: db.nothing",
            )
        unattached = await detach(client, "p", TABLE)
        assert (unattached.status, unattached.error_type) == (404, "NoSuchMappingException")

    @pytest.mark.parametrize(
        "target",
        [
            {},
            {"type": "view", "path": ["db", "v"]},
            {"type": "catalog", "path": ["db"]},
            {"type": "namespace"},
            {"type": "namespace", "path": []},
            {"type": "table-like", "path": ["t"]},
            {"type": "table-like", "path": ["db", ""]},
        ],
    )
    async def test_a_target_must_be_one(self, service: HttpService, target: JsonObject) -> None:
        await service.policy("p")

        assert (await attach(service.client, "p", target)).status == 400

    async def test_the_predefined_ones_are_for_tables_and_others_for_all(self, service: HttpService) -> None:
        await service.view("v")
        await service.generic_table("g")
        await service.policy("p", of=COMPACTION)
        await service.policy("q")
        for name in ("v", "g"):
            target: JsonObject = {"type": "table-like", "path": ["db", name]}
            assert (await attach(service.client, "p", target)).status == 400
            assert (await attach(service.client, "q", target)).status == 204
            assert await applies(service.client, f"?namespace=db&target-name={name}") == [("q", False)]

    async def test_parameters_are_bounded(self, service: HttpService) -> None:
        await service.policy("p")

        assert (await attach(service.client, "p", TABLE, parameters={"a": "b" * 9_000})).status == 400
        assert (await attach(service.client, "p", TABLE, parameters={"a": 1})).status == 400


class TestLists:
    async def test_policies_are_listed_in_pages_and_by_their_type(self, service: HttpService) -> None:
        for name, kind in (("a", COMPACTION), ("b", "ours"), ("c", COMPACTION)):
            await service.policy(name, of=kind)

        first = await service.client.get(f"{POLICIES}?pageSize=2&pageToken=")
        rest = await service.client.get(f"{POLICIES}?pageSize=2&pageToken={first.json['next-page-token']}")
        of_type = await service.client.get(f"{POLICIES}?policyType={COMPACTION}")

        assert [names(first), names(rest), names(of_type)] == [["a", "b"], ["c"], ["a", "c"]]
        assert (await service.client.get(POLICIES.replace("db", "nowhere"))).error_type == "NoSuchNamespaceException"

    async def test_all_pages_of_what_applies_show_one_state(self, service: HttpService) -> None:
        for name in ("a", "b", "c"):
            await service.policy(name, TABLE)
        target = f"{APPLICABLE}?namespace=db&target-name=t&pageSize=2&pageToken="

        first = await service.client.get(target)
        assert (await detach(service.client, "c", TABLE)).status == 204
        rest = await service.serve().get(f"{target}{first.json['next-page-token']}")

        assert [found["name"] for found in cast(list[JsonObject], first.json["applicable-policies"])] == ["a", "b"]
        assert [found["name"] for found in cast(list[JsonObject], rest.json["applicable-policies"])] == ["c"]
        assert rest.json["next-page-token"] is None

    @pytest.mark.parametrize("token", ["x", "W10", "WyIwMUpERVFRUVFRUVFRUVFRUVFRUVFRUVFRUSIsLTFd"])
    async def test_a_token_of_another_listing_is_refused(self, service: HttpService, token: str) -> None:
        assert (await service.client.get(f"{APPLICABLE}?pageToken={token}")).status == 400

    async def test_a_target_needs_its_namespace(self, client: Client) -> None:
        assert (await client.get(f"{APPLICABLE}?target-name=t")).status == 400
        assert (await client.get(f"{APPLICABLE}?namespace=nowhere")).error_type == "NoSuchNamespaceException"


def names(answer: Answer) -> list[object]:
    return [identifier["name"] for identifier in cast(list[JsonObject], answer.json["identifiers"])]
