"""No key is taken for which anyone can sign: points of a small order on Edwards curves."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ed448, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from arco_catalog.authentication.edwards import is_sound_point

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)
"""A square root of -1."""
Point = tuple[int, int]


def added(first: Point, second: Point) -> Point:
    (x1, y1), (x2, y2) = first, second
    both = D * x1 * x2 * y1 * y2 % P
    return (
        (x1 * y2 + x2 * y1) * pow(1 + both, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - both, -1, P) % P,
    )


def point_of(y: int, sign: int) -> Point | None:
    """The point of Ed25519 with this y coordinate, and an x with this lowest bit; None if there is none."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT % P
    if x * x % P != square:
        return None
    return (x if x % 2 == sign else -x % P), y


def small_points() -> set[Point]:
    """All points of Ed25519 whose order divides 8: the multiples of a point by the order of the base point."""
    order = 2**252 + 27742317777372353535851937790883648493
    for y in range(2, 100):
        point = point_of(y, 0)
        if point is None:
            continue
        generator = multiple(order, point)
        found = {multiple(times, generator) for times in range(8)}
        if len(found) == 8:
            return found
    raise AssertionError


def multiple(times: int, point: Point) -> Point:
    result: Point = (0, 1)
    while times:
        if times & 1:
            result = added(result, point)
        point, times = added(point, point), times >> 1
    return result


def encoded(y: int, sign: int, size: int = 32) -> bytes:
    return (y | sign << (8 * size - 1)).to_bytes(size, "little")


def test_the_eight_points_of_a_small_order_are_refused() -> None:
    points = small_points()
    assert len(points) == 8
    assert not any(is_sound_point("Ed25519", encoded(y, sign)) for _, y in points for sign in (0, 1))


def test_encodings_that_are_not_canonical_are_refused() -> None:
    for y in range(P, 2**255):
        assert not any(is_sound_point("Ed25519", encoded(y, sign)) for sign in (0, 1))
    assert is_sound_point("Ed25519", encoded(P - 3, 1))
    prime = 2**448 - 2**224 - 1
    for y in (0, 1, prime - 1, prime, prime + 1, 2**448, 2**455 - 1):
        assert not any(is_sound_point("Ed448", encoded(y, sign, 57)) for sign in (0, 1))
    assert is_sound_point("Ed448", encoded(prime - 3, 1, 57))


@pytest.mark.parametrize(
    ("curve", "size"), [("Ed25519", 31), ("Ed25519", 33), ("Ed448", 56), ("X25519", 32), (None, 32)]
)
def test_other_lengths_and_curves_are_refused(curve: str | None, size: int) -> None:
    assert not is_sound_point(curve, b"\x09" + bytes(size - 1))


def test_keys_that_are_drawn_are_taken() -> None:
    for _ in range(50):
        key = ed25519.Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        assert is_sound_point("Ed25519", key)
        longer = ed448.Ed448PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        assert is_sound_point("Ed448", longer)
