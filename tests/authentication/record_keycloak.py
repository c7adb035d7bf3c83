"""Records what Keycloak sends: `python -m tests.authentication.record_keycloak` writes keycloak.json beside this file.

The tokens have expired, and their realm lived in memory for the length of the recording.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from arco_catalog.state.runtime import SystemRuntime
from tests.support.keycloak import Keycloak, keycloak
from tests.support.keycloak_realm import PASSWORD, SECRET, make_realm

RECORDED = Path(__file__).with_name("keycloak.json")
CLIENTS = ("spark", "elsewhere", "audienceless", "lightweight", "long-lived")


def main() -> None:
    """Writes the documents and tokens of a realm, before and after its key is replaced."""
    with tempfile.TemporaryDirectory() as folder, keycloak(Path(folder) / "keycloak.log") as running:
        for realm in ("lake", "other"):
            make_realm(running, realm)
        RECORDED.write_text(json.dumps(_recording(running), indent=1) + "\n")


def _recording(running: Keycloak) -> dict[str, Any]:
    tokens = {client: running.tokens("lake", client, SECRET)["access_token"] for client in CLIENTS}
    form = {"grant_type": "password", "username": "ada", "password": PASSWORD, "scope": "openid"}
    ada = running.tokens("lake", "spark", SECRET, **form)
    tokens |= {"ada": ada["access_token"], "id": ada["id_token"], "refresh": ada["refresh_token"]}
    tokens["other"] = running.tokens("other", "spark", SECRET)["access_token"]
    (first,) = running.signing_keys("lake")
    keys = [_keys(running)]
    running.add_key("lake", "second", 200)
    tokens["second"] = running.tokens("lake", "long-lived", SECRET)["access_token"]
    keys.append(_keys(running))
    running.remove_key("lake", first)
    keys.append(_keys(running))
    return {
        "issuer": running.issuer("lake"),
        "at_ms": SystemRuntime().now_ms(),
        "users": {user: running.user("lake", user) for user in ("ada", "service-account-spark")},
        "discovery": running.document("lake", ".well-known/openid-configuration"),
        "keys": keys,
        "tokens": tokens,
    }


def _keys(running: Keycloak) -> Any:
    return running.document("lake", "protocol/openid-connect/certs")


if __name__ == "__main__":
    main()
