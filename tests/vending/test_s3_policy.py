"""A session policy opens exactly the folders that it is for."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.state.locations import Location
from arco_catalog.vending.s3_policy import MAX_POLICY_CHARACTERS, can_be_named, grouped, literal, session_policy
from arco_catalog.vending.storage_config import AwsStorage
from tests.vending.aws_policies import allows, matches

AMAZON = AwsStorage(role_arn="arn:aws:iam::123456789012:role/lake")
ELSEWHERE = AwsStorage(role_arn="arn:aws:iam::123456789012:role/lake", endpoint="http://127.0.0.1:9000")

NAMES = st.text(st.sampled_from("at2*?${}é/.\"\\'"), min_size=1, max_size=8).filter(lambda text: text.strip("/"))


def location(path: str, bucket: str = "lake") -> Location:
    return Location("s3", bucket, tuple(segment for segment in path.split("/") if segment))


@given(text=NAMES, other=NAMES)
def test_a_literal_is_matched_by_itself_alone(text: str, other: str) -> None:
    assert matches(literal(text), text)
    assert matches(literal(text), other) is (text == other)


@given(folders=st.lists(NAMES, min_size=1, max_size=3), key=NAMES, write=st.booleans())
def test_a_key_is_open_if_and_only_if_it_is_inside_a_folder(folders: list[str], key: str, write: bool) -> None:
    locations = [location(folder) for folder in folders]
    policy = session_policy(locations, AMAZON, write=write)
    inside = any(key.startswith(f"{folder.path}/") for folder in locations)

    assert allows(policy, "s3:GetObject", f"arn:aws:s3:::lake/{key}") is inside
    assert allows(policy, "s3:PutObject", f"arn:aws:s3:::lake/{key}") is (inside and write)
    assert allows(policy, "s3:DeleteObject", f"arn:aws:s3:::lake/{key}") is (inside and write)
    assert allows(policy, "s3:ListBucket", "arn:aws:s3:::lake", key) is inside
    assert not allows(policy, "s3:ListBucket", "arn:aws:s3:::lake")
    assert not allows(policy, "s3:GetObject", f"arn:aws:s3:::lake2/{key}")


@given(folders=st.lists(st.tuples(st.sampled_from(["lake", "pond"]), NAMES), min_size=1, max_size=20))
def test_every_folder_is_in_one_policy_that_fits(folders: list[tuple[str, str]]) -> None:
    locations = [location(path, bucket) for bucket, path in folders]
    groups = grouped(locations, AMAZON, write=True)

    assert sorted(x.uri for group in groups for x in group) == sorted(x.uri for x in locations)
    for group in groups:
        policy = session_policy(group, AMAZON, write=True)
        assert len(policy) <= MAX_POLICY_CHARACTERS
        assert policy.isascii()


def test_what_does_not_fit_one_policy_gets_one_each_and_is_never_widened() -> None:
    locations = [location(f"{'deep/' * 40}t{number}") for number in range(5)]

    assert grouped(locations, AMAZON, write=False) == [(x,) for x in locations]


def test_a_folder_whose_own_policy_is_too_long_gets_none() -> None:
    fits, too_long = location("t"), location("$" * 300)

    assert grouped([fits, too_long], AMAZON, write=False) == [(fits,)]


@pytest.mark.parametrize(
    ("path", "named"), [("a/t", True), ("a/t$", True), ("a*b", False), ("a?b", False), ("${aws:username}", False)]
)
def test_where_escapes_may_not_be_read_nothing_is_vended_that_needs_one(path: str, named: bool) -> None:
    assert can_be_named(location(path), AMAZON)
    assert can_be_named(location(path), ELSEWHERE) is named
    assert bool(grouped([location(path)], ELSEWHERE, write=False)) is named


@pytest.mark.parametrize("bucket", ["*", "b?", "a", "lake*", "lake/x", "ünder"])
def test_a_bucket_that_cannot_be_gets_nothing(bucket: str) -> None:
    assert grouped([location("t", bucket)], AMAZON, write=False) == []


def test_the_partition_is_that_of_the_role() -> None:
    config = AwsStorage(role_arn="arn:aws-us-gov:iam::123456789012:role/lake")

    assert allows(session_policy([location("t")], config, write=False), "s3:GetObject", "arn:aws-us-gov:s3:::lake/t/1")


def test_keys_are_opened_for_what_the_mode_needs() -> None:
    config = AwsStorage(role_arn="arn:aws:iam::1:role/r", current_kms_key="arn:k/1", allowed_kms_keys=("arn:k/2",))
    read, write = (session_policy([location("t")], config, write=write) for write in (False, True))

    assert [allows(policy, "kms:Decrypt", "arn:k/2") for policy in (read, write)] == [True, True]
    assert [allows(policy, "kms:GenerateDataKey", "arn:k/1") for policy in (read, write)] == [False, True]
    assert not allows(write, "kms:GenerateDataKey", "arn:k/2")


def test_keys_that_are_unavailable_are_left_out() -> None:
    config = AwsStorage(role_arn="arn:aws:iam::1:role/r", current_kms_key="arn:k/1", kms_unavailable=True)

    assert "kms" not in session_policy([location("t")], config, write=True)


def test_the_policy_is_the_one_that_was_thought_out() -> None:
    policy = json.loads(session_policy([location("db/t*")], AMAZON, write=False))

    assert policy == {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::lake/db/t${*}/*"]},
            {
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": "arn:aws:s3:::lake",
                "Condition": {"StringLike": {"s3:prefix": ["db/t${*}/*"]}},
            },
        ],
    }
