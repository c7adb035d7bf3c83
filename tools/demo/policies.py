"""Makes policies of tables and attaches them, over HTTP, for the demo of the pipeline."""

import json
import re

import requests

from arco_catalog.iceberg.json import JsonObject
from tools.demo.server import WAREHOUSE


def set_policies(uri: str, namespace: str, table: str, policies: dict[str, JsonObject]) -> None:
    """Makes policies at the server of this URI, and attaches them to a table."""
    config = requests.get(f"{uri}/v1/config", params={"warehouse": WAREHOUSE}, timeout=30).json()
    where = f"{uri}/polaris/v1/{config['overrides']['prefix']}/namespaces/{namespace}/policies"
    target = {"target": {"type": "table-like", "path": [namespace, table]}}
    for kind, content in policies.items():
        name = "-".join([*re.findall(r"\w+", table), kind])
        policy: JsonObject = {
            "name": name,
            "type": f"system.{kind}",
            "content": json.dumps({"enable": True, **content}),
        }
        requests.post(where, json=policy, timeout=30).raise_for_status()
        requests.put(f"{where}/{name}/mappings", json=target, timeout=30).raise_for_status()
