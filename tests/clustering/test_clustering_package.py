"""The public names of newkind.clustering."""

import pytest

import newkind.clustering


def test_public_names_exist_are_sorted_and_listed() -> None:
    names = newkind.clustering.__all__
    assert names == sorted(names)
    assert all(hasattr(newkind.clustering, name) for name in names)
    assert set(names) <= set(dir(newkind.clustering))


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError):
        _ = newkind.clustering.no_such_name
