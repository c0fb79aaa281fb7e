"""Images are recognised by content."""

from newkind.report.image_pairs import pair_by_content
from newkind.runs.image_match import match_images


def test_equal_names_first_then_in_order_then_copies() -> None:
    names, digests = ["x", "b", "c", "d", "e"], [b"1", b"1", b"1", b"1", b""]
    assert match_images(names, digests, ["a", "b", "c2"], [b"1", b"1", b"2"]).tolist() == [0, 1, 0, 0, -1]


def test_a_name_with_another_content_is_another_image() -> None:
    assert match_images(["a"], [b"1"], ["a"], [b"2"]).tolist() == [-1]
    assert match_images(["a"], [b""], ["a"], [b""]).tolist() == [-1]


def test_pairs_have_each_image_once() -> None:
    found = pair_by_content(["x", "a", "y"], [b"1", b"1", b"2"], ["a", "z"], [b"1", b"2"])
    assert (found.here.tolist(), found.there.tolist(), found.by_content) == ([1, 2], [0, 1], True)
