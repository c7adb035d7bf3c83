"""Session policies for S3: exactly some folders, read or written. Pure functions.

Sources: IAM user guide, "IAM JSON policy elements: Variables and tags" (escapes), "Session policies"; STS API
reference, `AssumeRole` (the limit and the characters of a policy); Amazon S3, "Actions, resources, and condition keys".
"""

import json
import re
from collections.abc import Sequence

from arco_catalog.state.locations import Location
from arco_catalog.vending.storage_config import AwsStorage

MAX_POLICY_CHARACTERS = 2_048
"""Of an inline session policy, as it is sent."""

_BUCKET = re.compile(r"[A-Za-z0-9._-]{3,63}")
_SPECIAL = re.compile(r"[*?$]")
_READ = ("s3:GetObject",)
_WRITE = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


def literal(text: str) -> str:
    """A text as a policy spells it where `*`, `?` and `$` have a meaning: in ARNs, and in the values of StringLike."""
    return _SPECIAL.sub(lambda found: f"${{{found[0]}}}", text)


def can_be_named(location: Location, config: AwsStorage) -> bool:
    """Whether a policy can name this folder and nothing besides. Stores other than Amazon's are not known to read the
    escapes: what would need one there gets no credentials, rather than wider ones."""
    if not _BUCKET.fullmatch(location.authority):
        return False
    return config.is_amazon or not ("*" in location.path or "?" in location.path or "${" in location.path)


def session_policy(locations: Sequence[Location], config: AwsStorage, *, write: bool) -> str:
    """The policy that opens these folders, in ASCII: the parameter takes no characters above U+00FF.

    A LIST needs a prefix inside: StringLike, since StringEquals would allow only one. Each folder ends in a slash, so
    that `table` does not open `table2`.
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
    """The folders, all together if one policy holds them, else each alone. One whose own policy is too long is left
    out."""
    named = tuple(location for location in locations if can_be_named(location, config))
    if not named:
        return []
    if _fits(named, config, write):
        return [named]
    return [(location,) for location in named if _fits((location,), config, write)]


def _fits(locations: Sequence[Location], config: AwsStorage, write: bool) -> bool:
    return len(session_policy(locations, config, write=write)) <= MAX_POLICY_CHARACTERS


def _kms(config: AwsStorage, *, write: bool) -> list[object]:
    """Reading needs the keys that data may be encrypted with, writing the current one."""
    keys = list(dict.fromkeys(key for key in (config.current_kms_key, *config.allowed_kms_keys) if key))
    if config.kms_unavailable or not keys:
        return []
    spelled = [literal(key) for key in keys]
    read: object = {"Effect": "Allow", "Action": ["kms:Decrypt", "kms:DescribeKey"], "Resource": spelled}
    if not write or not config.current_kms_key:
        return [read]
    return [read, {"Effect": "Allow", "Action": "kms:GenerateDataKey", "Resource": literal(config.current_kms_key)}]
