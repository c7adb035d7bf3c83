"""Chooses how requests to a bucket of S3 are sent: over connections of our own, or by Amazon's SDK where our own can't,
or where ARCO_S3_CLIENT names it."""

from storage_backends.base import StoreError
from storage_backends.s3.access_point import region_of_arn
from storage_backends.s3.config import Carrier, S3Config
from storage_backends.s3.credentials import region_of
from storage_backends.s3.endpoint import endpoint_of, is_arn, is_directory_bucket
from storage_backends.wire.exchange import Transport


async def open_transport(bucket: str, config: S3Config) -> Transport:
    """Returns the transport that carries requests to a bucket. Nothing is sent yet. Raises `StoreError` for a
    configuration that can't be followed, also where the SDK is needed and not installed."""
    region = region_of_arn(bucket) if is_arn(bucket) else await region_of(config)
    known_by_name = not is_directory_bucket(bucket) and not is_arn(bucket)
    endpoint = endpoint_of(bucket if known_by_name else "bucket", region, config)
    proxy = config.proxies.proxy_for(tls=endpoint.tls, host=endpoint.host, port=endpoint.port)
    reason = wire_refuses(bucket, proxy)
    if config.carrier is Carrier.WIRE or (config.carrier is Carrier.AUTO and reason is None):
        if reason is not None:
            raise StoreError(
                f"{reason}: set ARCO_S3_CLIENT=sdk, or leave it out (install the extra 's3-sdk' of arco-catalog), "
                "except to read previous versions of objects, for which the SDK is never used"
            )
        from storage_backends.s3.transport import open_wire_transport

        return await open_wire_transport(endpoint, region, config)
    try:
        from storage_backends.s3.sdk import open_sdk_transport  # half a second, for those who need it
    except ModuleNotFoundError as error:
        why = reason or "ARCO_S3_CLIENT is sdk"
        raise StoreError(
            f"{why}, and {error.name} is not installed: install the extra 's3-sdk' of arco-catalog"
        ) from error
    return await open_sdk_transport(bucket, region, config, proxy)


def wire_refuses(bucket: str, proxy: str) -> str | None:
    """Returns the reason why connections of our own can't serve this bucket; None if they can. `proxy` is the URL of
    the proxy on the way, empty if there is none."""
    if is_directory_bucket(bucket):
        return f"{bucket!r} is a directory bucket (S3 Express One Zone), which only Amazon's SDK can reach"
    if is_arn(bucket):
        return f"{bucket!r} is an ARN, which only Amazon's SDK can follow (an access point's alias needs no SDK)"
    if proxy:
        return (
            "the environment names a proxy on the way to S3 (NO_PROXY can except it), which only Amazon's SDK can use"
        )
    return None
