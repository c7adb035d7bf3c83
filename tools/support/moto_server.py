"""Runs moto, an emulator of AWS, in a process of its own so that several processes can share it: `python -m
tools.support.moto_server`.

Prints its port, and ends when its standard input does, so it never outlives the program that started it.
"""

import argparse
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.responses import S3Response
from werkzeug.serving import WSGIRequestHandler, make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class QuietHandler(WSGIRequestHandler):
    """A request handler for moto that writes no log."""

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002  the signature is werkzeug's
        """Says nothing: requests are not news."""


def make_atomic() -> None:
    """moto checks a condition and then writes, with nothing in between but luck: one lock makes it one step."""
    lock = threading.RLock()

    def locked(handle: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @functools.wraps(handle)
        def handle_alone(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            with lock:
                return handle(*args, **kwargs)

        return handle_alone

    for name in ("key_response", "bucket_response"):
        setattr(S3Response, name, locked(getattr(S3Response, name)))


def without_conditions(application: "WSGIApplication") -> "WSGIApplication":
    """The negative control: a server that takes conditional requests and ignores the conditions."""

    def ignore(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        environ.pop("HTTP_IF_MATCH", None)
        environ.pop("HTTP_IF_NONE_MATCH", None)
        return application(environ, start_response)

    return ignore


def main() -> None:
    """Serves until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ignore-conditions", action="store_true")
    arguments = parser.parse_args()
    make_atomic()
    sys.setswitchinterval(1e-6)  # adversarial: threads change places at every chance
    application: WSGIApplication = DomainDispatcherApplication(create_backend_app)
    if arguments.ignore_conditions:
        application = without_conditions(application)
    server = make_server("127.0.0.1", arguments.port, application, threaded=True, request_handler=QuietHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)  # noqa: T201  the program that started it reads the port
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
