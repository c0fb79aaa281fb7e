"""Commands have no options that they ignore."""

import pytest
import typer

from newkind.cli import app


@pytest.mark.parametrize(
    ("verb", "left_out"),
    [
        ("estimate-k", {"--views", "--tuned-blocks", "--dtype", "--patch-tokens"}),
        ("features", {"--tuned-blocks", "--dtype", "--patch-tokens"}),
    ],
)
def test_verbs_that_store_no_tokens_have_no_options_of_tokens(verb: str, left_out: set[str]) -> None:
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    options = {name for parameter in command.params for name in parameter.opts}
    assert {"--backbone", "--image-size", "--trunk-precision"} <= options
    assert not left_out & options
