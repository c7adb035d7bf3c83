"""Writes and parses the XML bodies by which one request deletes many objects (S3 API reference, `DeleteObjects`)."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import md5

from storage_backends.base import StoreError
from storage_backends.s3.answers import failure_of_key
from storage_backends.wire.xml import local_name, parse_xml

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def write_deletion(keys: Iterable[str]) -> bytes:
    """Returns the XML body of a request that deletes these keys, and whose response lists only failures."""
    objects = "".join(f"<Object><Key>{key.translate(_ESCAPES)}</Key></Object>" for key in keys)
    return f'<Delete xmlns="{_NAMESPACE}"><Quiet>true</Quiet>{objects}</Delete>'.encode()


def md5_of(body: bytes) -> str:
    """Returns the value of the header `Content-MD5` for a body. S3 takes no deletion of many objects without a
    checksum, and this is the one that all servers know."""
    return b64encode(md5(body, usedforsecurity=False).digest()).decode()


def keys_in(body: bytes) -> list[str]:
    """Returns the keys in the body of a deletion that `write_deletion` has made, for a transport that writes the
    request in another form."""
    from xml.etree import ElementTree

    return [key.text or "" for key in ElementTree.fromstring(body).iter(f"{{{_NAMESPACE}}}Key")]


def read_deletion(body: bytes) -> Mapping[str, StoreError]:
    """Reads the response to a deletion of many objects. Returns the failures by the keys of objects that were not, or
    perhaps not, deleted; an error that an object was missing is none. Raises ValueError for a body that is no complete
    response."""
    failures: dict[str, StoreError] = {}
    for element in parse_xml(body, "the answer to the deletion", "DeleteResult"):
        if local_name(element) == "Error":
            texts = {local_name(child): child.text or "" for child in element}
            failure = failure_of_key(texts.get("Code", ""), texts.get("Message", ""))
            if failure is not None:
                failures[texts.get("Key", "")] = failure
    return failures
