"""Computes session policies for S3, which limit the keys of an assumed role to some folders, to read or also to write
them. Pure functions.

Sources: IAM user guide, "IAM JSON policy elements: Variables and tags" (escapes), "Session policies"; STS API
reference, `AssumeRole` (the limit and the characters of a policy); Amazon S3, "Actions, resources, and condition keys".
"""

import json
import re
from collections.abc import Sequence

from arco_catalog.state.locations import Location
from arco_catalog.vending.storage_config import AwsStorage

MAX_POLICY_CHARACTERS = 2_048
"""The limit of an inline session policy, as it is sent, in characters."""

_BUCKET = re.compile(r"[A-Za-z0-9._-]{3,63}")
_SPECIAL = re.compile(r"[*?$]")
_READ = ("s3:GetObject",)
_WRITE = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


def literal(text: str) -> str:
    """Returns a text with `*`, `?` and `$` escaped, for the places of a policy where they have a meaning: in ARNs, and
    in the values of StringLike."""
    return _SPECIAL.sub(lambda found: f"${{{found[0]}}}", text)


def can_be_named(location: Location, config: AwsStorage) -> bool:
    """Whether a policy can name this folder and nothing besides. Other stores than Amazon's may not read the escapes,
    so a location that needs one there gets no credentials, rather than wider ones."""
    if not _BUCKET.fullmatch(location.authority):
        return False
    return config.is_amazon or not ("*" in location.path or "?" in location.path or "${" in location.path)


def session_policy(locations: Sequence[Location], config: AwsStorage, *, write: bool) -> str:
    """Returns the policy that gives access to these folders, to read them or also to write them, and the use of the
    configured KMS keys, in ASCII: the parameter takes no characters above U+00FF.

    A LIST must have a prefix inside one of them, which StringLike expresses, because StringEquals would allow one
    prefix only. Each folder ends in a slash, so that `table` does not give access to `table2`.
    """
    spell = literal if config.is_amazon else str
    arn = f"arn:{config.partition}:s3:::"
    statements: list[object] = [
        {
            "Effect": "Allow",
            "Action": [*_READ, *(_WRITE if write else ())],
            "Resource": [f"{arn}{location.authority}/{spell(location.path)}/*" for location in locations],
        }
    ]
    for bucket in dict.fromkeys(location.authority for location in locations):
        inside = [f"{spell(location.path)}/*" for location in locations if location.authority == bucket]
        statements.append(
            {
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": f"{arn}{bucket}",
                "Condition": {"StringLike": {"s3:prefix": inside}},
            }
        )
    statements += _kms(config, write=write)
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"), ensure_ascii=True)


def grouped(locations: Sequence[Location], config: AwsStorage, *, write: bool) -> list[tuple[Location, ...]]:
    """Returns the folders in groups of which each fits into one policy: all together if possible, else each alone.
    Those that no policy can name, or whose own policy is too long, are left out."""
    named = tuple(location for location in locations if can_be_named(location, config))
    if not named:
        return []
    if _fits(named, config, write):
        return [named]
    return [(location,) for location in named if _fits((location,), config, write)]


def _fits(locations: Sequence[Location], config: AwsStorage, write: bool) -> bool:
    """Whether the policy for these locations has at most `MAX_POLICY_CHARACTERS`. STS may still find it too large: it
    also limits the size of the compressed policy."""
    return len(session_policy(locations, config, write=write)) <= MAX_POLICY_CHARACTERS


def _kms(config: AwsStorage, *, write: bool) -> list[object]:
    """Returns the statements for encryption keys: reading needs all keys that data may be encrypted with, writing the
    current one. Returns no statement if the store has no KMS, or no keys are configured."""
    keys = list(dict.fromkeys(key for key in (config.current_kms_key, *config.allowed_kms_keys) if key))
    if config.kms_unavailable or not keys:
        return []
    spelled = [literal(key) for key in keys]
    read: object = {"Effect": "Allow", "Action": ["kms:Decrypt", "kms:DescribeKey"], "Resource": spelled}
    if not write or not config.current_kms_key:
        return [read]
    return [read, {"Effect": "Allow", "Action": "kms:GenerateDataKey", "Resource": literal(config.current_kms_key)}]
