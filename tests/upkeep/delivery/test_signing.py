"""What webhooks get is signed by the scheme of Standard Webhooks, over the bytes that are sent."""

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest

from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.delivery.signing import key_of, new_secret, signed_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, AT_S, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'


def test_the_signature_is_that_of_the_example_of_the_scheme() -> None:
    assert signed_headers(SECRET, MESSAGE, AT_S, BODY) == {
        "webhook-id": MESSAGE,
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize(("message", "at_s", "body"), [("x", AT_S, BODY), (MESSAGE, 1, BODY), (MESSAGE, AT_S, b"{}")])
def test_the_signature_depends_on_the_id_the_time_and_the_body(message: str, at_s: int, body: bytes) -> None:
    assert (
        signed_headers(SECRET, message, at_s, body)["webhook-signature"]
        != signed_headers(SECRET, MESSAGE, AT_S, BODY)["webhook-signature"]
    )


def test_a_new_secret_has_thirty_two_random_bytes() -> None:
    secret = new_secret(SystemRuntime().entropy)

    assert len(key_of(secret)) == 32
    assert secret != new_secret(SystemRuntime().entropy)
    key = b64decode(secret.removeprefix("whsec_"))
    expected = b64encode(hmac.new(key, b"m.1.{}", hashlib.sha256).digest()).decode()
    assert signed_headers(secret, "m", 1, b"{}")["webhook-signature"] == f"v1,{expected}"


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_???", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ="])
def test_what_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the subscription is not 'whsec_'"):
        key_of(text)
