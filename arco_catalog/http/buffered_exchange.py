"""One exchange with an ASGI app in the process, for adapters and commands."""

from arco_catalog.http.asgi import Message


class BufferedExchange:
    """The ASGI `receive` and `send` of one request, with all of the body at once and the response collected in memory.
    `status` is 500 until the app has sent another."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.status = 500
        self.headers: dict[str, str] = {}
        self._pieces: list[bytes] = []

    @property
    def answer(self) -> bytes:
        """The body of the response, as much of it as was sent until now."""
        return b"".join(self._pieces)

    async def receive(self) -> Message:
        """Returns the whole request body in one message of ASGI; later calls return an empty one."""
        body, self._body = self._body, b""
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Takes one message of the response: sets `status` and `headers`, or adds a piece to the body in `answer`."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
        else:
            self._pieces.append(message.get("body", b""))
