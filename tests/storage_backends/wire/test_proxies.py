"""Which proxy a request goes through."""

import pytest

from storage_backends.wire.proxies import NO_PROXIES, Proxies

PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


@pytest.mark.parametrize(
    ("environment", "tls", "host", "proxy"),
    [
        ({}, True, "s3.amazonaws.com", ""),
        (PROXY, True, "s3.amazonaws.com", "http://proxy:3128"),
        (PROXY, False, "minio", ""),
        ({"https_proxy": "http://lower", **PROXY}, True, "h", "http://lower"),
        ({"HTTP_PROXY": "http://plain"}, False, "minio", "http://plain"),
        ({"ALL_PROXY": "http://all"}, True, "h", "http://all"),
        ({"ALL_PROXY": "http://all", **PROXY}, True, "h", "http://proxy:3128"),
        (PROXY, True, "127.0.0.1", ""),
        (PROXY, True, "::1", ""),
        (PROXY, True, "localhost", ""),
        ({**PROXY, "NO_PROXY": "*"}, True, "h", ""),
        ({**PROXY, "NO_PROXY": "amazonaws.com"}, True, "b.s3.eu-west-1.amazonaws.com", ""),
        ({**PROXY, "NO_PROXY": "other, .AmazonAWS.com"}, True, "S3.amazonaws.com", ""),
        ({**PROXY, "NO_PROXY": "*.amazonaws.com"}, True, "s3.amazonaws.com", ""),
        ({**PROXY, "NO_PROXY": "zonaws.com"}, True, "s3.amazonaws.com", "http://proxy:3128"),
        ({**PROXY, "NO_PROXY": "10.0.0.0/8"}, True, "10.1.2.3", ""),
        ({**PROXY, "NO_PROXY": "10.0.0.0/8"}, True, "11.1.2.3", "http://proxy:3128"),
        ({**PROXY, "NO_PROXY": "10.0.0.0/8"}, True, "h", "http://proxy:3128"),
        ({**PROXY, "NO_PROXY": "h:443"}, True, "h", ""),
        ({**PROXY, "NO_PROXY": "h:8443"}, True, "h", "http://proxy:3128"),
    ],
)
def test_the_usual_variables_say_which_proxy(environment: dict[str, str], tls: bool, host: str, proxy: str) -> None:
    assert Proxies.from_environment(environment).proxy_for(tls=tls, host=host, port=443) == proxy


def test_a_proxys_password_is_not_shown() -> None:
    assert "hush" not in repr(Proxies.from_environment({"HTTPS_PROXY": "http://me:hush@proxy"}))
    assert Proxies.from_environment({}) == NO_PROXIES
