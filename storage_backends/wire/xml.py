"""Parses the XML of a store's responses. The parser is imported with the first response that is parsed, to keep cold
starts fast: few requests list or delete many objects."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def parse_xml(body: bytes, what: str, root: str) -> "Element":
    """Returns the root element of an XML document. Raises ValueError, whose message names the document by `what`, for a
    body that is not XML, or whose root element is not named `root`."""
    from xml.etree import ElementTree

    try:
        element = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise ValueError(f"{what} is not XML: {error}") from error
    if local_name(element) != root:
        raise ValueError(f"the root element of {what} is {element.tag}, expected {root}")
    return element


def local_name(element: "Element") -> str:
    """Returns the name of an XML element without its namespace."""
    return element.tag[element.tag.rfind("}") + 1 :]
