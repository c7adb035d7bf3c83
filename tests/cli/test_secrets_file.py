"""The file for the secrets that an import makes."""

import os
from pathlib import Path

from arco_catalog.cli.realm_report import NewSecret
from arco_catalog.cli.secrets_file import SecretsFile, principals_in


def test_a_part_of_a_line_of_a_stopped_run_spoils_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.touch(0o600)
    os.chmod(path, 0o600)
    path.write_text('{"principal": "ann"}\n{"prin')

    for name in ("bob", "cay"):
        file = SecretsFile(str(path))
        file.add(NewSecret(name, "id", "secret"))
        file.close()

    assert principals_in(str(path)) == {"ann", "bob", "cay"}
    assert "\n\n" not in path.read_text()
