"""Reads the ARNs of access points of S3, which may stand in place of a bucket's name.

Sources: S3 user guide, "Referencing access points with ARNs, access point aliases, or virtual-hosted-style URIs" and
"Bucket naming rules".
"""

import re

from storage_backends.s3.endpoint import is_arn
from storage_backends.url import StoreUrl

_ACCESS_POINT = r"arn:aws[a-z-]*:s3:[a-z0-9-]+:[0-9]{12}:accesspoint:[a-z0-9][a-z0-9-]{1,48}[a-z0-9]"
_INSTEAD = "name a bucket, or an access point in one Region"


def canonical_url(url: StoreUrl) -> StoreUrl:
    """Returns the URL with the ARN before the first slash of the path, `s3://arn:...:accesspoint:NAME/prefix`, since
    many clients take what is before that slash as the bucket. Also accepts the form of the AWS CLI,
    `s3://arn:...:accesspoint/NAME/prefix`. A URL that names a bucket stays as it is.

    Raises `ValueError` for an ARN, or a multi-Region alias, that is no access point in one Region.
    """
    if url.host.endswith(".mrap"):
        raise ValueError(_refusal(url, "multi-Region access points are not supported"))
    if not is_arn(url.host):
        return url
    if url.host.endswith(":accesspoint"):
        url = StoreUrl.parse(url.text.replace(":accesspoint/", ":accesspoint:", 1))
    if not re.fullmatch(_ACCESS_POINT, url.host):
        raise ValueError(_refusal(url, _reason(url.host)))
    return url


def region_of_arn(arn: str) -> str:
    """Returns the Region that an ARN names, empty if it names none."""
    return arn.split(":")[3] if arn.count(":") >= 3 else ""


def _reason(arn: str) -> str:
    """Returns the reason, for a message, why an ARN cannot stand in place of a bucket."""
    _, _, service, region, *_ = [*arn.split(":"), "", "", ""]
    if service == "s3-outposts":
        return "S3 on Outposts is not supported"
    if service == "s3-object-lambda":
        return "Object Lambda access points are not supported: they answer with other bytes than were written"
    if service == "s3express":
        return "an access point of a directory bucket is named by its alias, which ends in --xa-s3"
    if ":accesspoint" in arn and not region:  # a write in one Region reaches the others later
        return "multi-Region access points are not supported: their signatures are of another kind (SigV4A)"
    return "expected s3://arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME/prefix"


def _refusal(url: StoreUrl, reason: str) -> str:
    """Returns the message for a URL that can't be opened."""
    return f"the store {url.text!r} cannot be opened: {reason}; {_INSTEAD}"
