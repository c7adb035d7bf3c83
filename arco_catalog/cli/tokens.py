"""The token that a command sends to a server."""

import asyncio
from collections.abc import Mapping

from arco_catalog.cli.small_files import MAX_TOKEN_BYTES, read_text


async def token_for(url: str, token_file: str | None, environment: Mapping[str, str]) -> str | None:
    """Returns the token to send to a server: that of the token file, or else that of the saved login, None if there is
    none. Raises `CliError` for a file that can't be read, for a login at another server, and for one that expires
    within a minute and can't be renewed."""
    if token_file is None:
        from arco_catalog.cli.login import saved_token  # needs httptools, which a command at a store may lack

        return await saved_token(url, environment)
    return await asyncio.to_thread(read_text, token_file, "the token", MAX_TOKEN_BYTES)
