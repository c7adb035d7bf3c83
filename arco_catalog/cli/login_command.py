"""Declares the arguments of `arco login`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import Command

EXAMPLES = """\
Gets a token for a server, and saves it in a file that only its owner may read,
below $XDG_CONFIG_HOME/arco/logins. Commands with --url send it, and renew it
while they can. With --issuer a person logs in: by a code to confirm in any
browser or, with --browser, by a browser on this machine. Without it, a client
logs in with its id and the secret in a file. No token is printed.

examples:
  arco login https://catalog.example.com --client-id ID --secret-file secret
  arco login https://catalog.example.com --client-id arco \\
      --issuer https://login.example.com
  arco login https://catalog.example.com --client-id arco --browser \\
      --issuer https://login.example.com
  arco login https://catalog.example.com --forget
"""
OF_CATALOG, OF_ISSUER = "PRINCIPAL_ROLE:ALL", "openid offline_access"


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco login`, none of which has its default in the environment."""
    parser.add_argument("url", metavar="URL", help="the server to log in to")
    parser.add_argument("--client-id", metavar="ID", help="of the principal, or at the issuer that of this program")
    parser.add_argument(
        "--secret-file", metavar="FILE", help="a file with the client's secret, which is read for each new token"
    )
    parser.add_argument("--issuer", metavar="URL", help="the issuer of tokens that the server accepts")
    parser.add_argument("--browser", action="store_true", help="log in by a browser on this machine, with PKCE")
    parser.add_argument(
        "--scope",
        metavar="WORDS",
        help=f"what to request [default {OF_CATALOG}, for a person '{OF_ISSUER}', for a client of an issuer nothing]",
    )
    parser.add_argument("--forget", action="store_true", help="delete the saved login")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco login`, and returns the exit code. Except for --forget, exits with 2 if --client-id is missing;
    without --issuer, for a client, if --secret-file is, or --browser is given; and for --browser with --secret-file."""
    from arco_catalog.cli import login

    if parsed.forget:
        return login.run_forget(parsed.url, parsed.environment)
    if parsed.client_id is None:
        parsed.parser.error("--client-id is required, unless the login is to be forgotten")
    if parsed.issuer is None and (parsed.secret_file is None or parsed.browser):
        parsed.parser.error(
            "a client logs in by --secret-file, with or without --issuer, a person by --issuer; --browser needs "
            "--issuer"
        )
    if parsed.browser and parsed.secret_file is not None:
        parsed.parser.error("--browser is for the login of a person: leave --secret-file out")
    scope = parsed.scope or (OF_CATALOG if parsed.issuer is None else "" if parsed.secret_file else OF_ISSUER)
    request = login.LoginRequest(
        parsed.url.rstrip("/"), parsed.client_id, scope, parsed.issuer, parsed.secret_file or "", parsed.browser
    )
    return login.run(request, parsed.environment)


COMMAND = Command("login", "log in to a server, for commands with --url", EXAMPLES, add_arguments, run, False)
