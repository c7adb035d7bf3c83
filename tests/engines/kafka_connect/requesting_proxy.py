"""A proxy that adds a request to rebase to each new snapshot. Iceberg's sink for Kafka Connect has no setting for
fields of the summary: this is what users could send if it had one."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tools.support.appended_files import REBASE

UPSTREAM_S = 60.0
OF_ONE_CONNECTION = {"connection", "host", "content-length"}


@contextmanager
def requesting_rebases(upstream: str) -> Iterator[str]:
    """Passes requests on to a catalog. Yields the URI of the proxy, on loopback."""
    address = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def relay(self) -> None:
            body = requesting(self.rfile.read(int(self.headers.get("content-length", 0))))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in OF_ONE_CONNECTION}
            client = HTTPConnection(address, timeout=UPSTREAM_S)
            try:
                client.request(self.command, self.path, body, headers)
                answer = client.getresponse()
                content = answer.read()
            finally:
                client.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in OF_ONE_CONNECTION:
                    self.send_header(name, value)
            if self.command != "HEAD" and answer.status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name in the base class
            """Logs nothing."""

    for method in ("GET", "HEAD", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.relay)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            serving.join()


def requesting(body: bytes) -> bytes:
    """The body of a request, in which each new snapshot has the field."""
    if b"add-snapshot" not in body:
        return body
    commit = json.loads(body)
    for update in commit["updates"]:
        if update["action"] == "add-snapshot":
            update["snapshot"]["summary"] |= REBASE
    return json.dumps(commit).encode()
