"""Geometry of the confusion matrix."""

from newkind.report.matrix import matrix_layout


def test_a_matrix_has_room_for_its_names() -> None:
    small = matrix_layout(["a", "bb"], ["x", "y", "z"], is_named=True)
    long = matrix_layout(["a" * 99, "bb"], ["x" * 99, "y", "z"], is_named=True)
    assert (small.width, small.height) == (66, 44)
    assert small.left < long.left < 180
    assert small.below < long.below < 140
    many = matrix_layout(["a"] * 100, ["x"] * 100, is_named=False)
    assert many.total_width < 760
    assert many.opacity(0.0) < many.opacity(0.5) < many.opacity(1.0) == 1.0
