"""Command-line options made from configuration dataclasses: names, types, defaults and help texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from newkind.config import BackboneConfig, TrainingConfig, parameter_docs
from newkind.reading import ReadingConfig
from newkind.setting import choices_of, value_type

__all__ = [
    "DATA",
    "LEFT_OUT",
    "WITHOUT_TOKENS",
    "Data",
    "MinConfidence",
    "RunFolder",
    "config_options",
    "given_options",
    "option_names",
]

DATA = (
    "A folder, a table (.csv, .tsv, .jsonl, .xlsx, .parquet), boxes of a detector (.json), an .npz, .npy, .tar or .parquet "
    "file, or a published benchmark as NAME:FOLDER."
)
Data = Annotated[str, typer.Argument(help=DATA)]
RunFolder = Annotated[str, typer.Argument(help="A run folder written by discover.")]
MinConfidence = Annotated[
    float,
    typer.Option(
        "--min-confidence",
        help="Unlabelled images with a lower confidence, between 0 and 1, get the status `unsure`.",
        show_default=False,
    ),
]
LEFT_OUT = object()
"""Default of a field for which a verb has no option."""
WITHOUT_TOKENS = dict.fromkeys(("views", "tuned_blocks", "dtype", "patch_tokens"), LEFT_OUT)
"""Defaults of the backbone for verbs that compute features of views and store no tokens."""
PANELS = {TrainingConfig: "Training", BackboneConfig: "Backbone and views", ReadingConfig: "Columns, boxes and groups"}


def config_options(**configs: type | tuple[type, dict[str, Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb one option per field of config classes.

    The verb itself takes the config objects. Options whose name the verb already has as a parameter are left to the verb.

    Parameters
    ----------
    **configs : type, or (type, dict)
        Parameter of the verb to config class, optionally with other defaults for this verb. A default of None means that
        the option was not given, and the field keeps the class's default; LEFT_OUT, that there is no option.

    Returns
    -------
    callable
        Decorator.

    Examples
    --------
    >>> @config_options(training=TrainingConfig)
    ... def verb(training):
    ...     return training.epochs
    >>> "epochs" in inspect.signature(verb).parameters
    True
    """

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(verb)
        hints = get_type_hints(verb, include_extras=True)
        own = [
            p.replace(annotation=hints[p.name]) if p.name in hints else p
            for p in signature.parameters.values()
            if p.name not in configs
        ]
        taken = {p.name for p in own}
        options: dict[str, dict[str, inspect.Parameter]] = {}
        for parameter, kind in configs.items():
            config, changed = kind if isinstance(kind, tuple) else (kind, {})
            options[parameter] = _options(config, changed, taken)

        @wraps(verb)
        def run(**values: Any) -> Any:
            for parameter, kind in configs.items():
                config = kind[0] if isinstance(kind, tuple) else kind
                given = {field: values.pop(option.name) for field, option in options[parameter].items()}
                values[parameter] = config(**{name: value for name, value in given.items() if value is not None})
            return verb(**values)

        made = [option for group in options.values() for option in group.values()]
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [*own, *made]]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
        return run

    return decorate


def _options(config: type, changed: dict[str, Any], taken: set[str]) -> dict[str, inspect.Parameter]:
    """Field name to the option that sets it."""
    docs = parameter_docs(config)
    found = {}
    for item in fields(config):
        name = item.metadata.get("option", item.name)
        if name is None or name in taken:
            continue
        default = changed.get(item.name, None if item.default is MISSING else item.default)
        if default is LEFT_OUT:
            continue
        found[item.name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=_annotation(config, item, name, docs[item.name], default),
        )
    return found


def _annotation(config: type, item: Field[Any], name: str, about: str, default: Any) -> Any:
    kind: Any = value_type(config, item.name)
    flags = [f"--{name.replace('_', '-')}"]
    option = typer.Option(
        *flags,
        help=about,
        rich_help_panel=PANELS.get(config),
        envvar=item.metadata.get("envvar"),
        show_default=default is not None and kind is not bool,
        metavar="|".join(map(str, choices_of(config, item.name))) or None,
    )
    return Annotated[kind if default is not None else kind | None, option]


def given_options(context: typer.Context) -> dict[str, Any]:
    """Options and arguments that are on the command line of a verb."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name: context.params[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def option_names(app: typer.Typer) -> dict[str, str]:
    """Parameter name to option of all verbs, to name options in messages: `batch_size` to --batch-size."""
    names: dict[str, str] = {}
    command = typer.main.get_command(app)
    verbs = [command, *getattr(command, "commands", {}).values()]
    verbs += [inner for verb in verbs[1:] for inner in getattr(verb, "commands", {}).values()]
    for verb in verbs:
        for parameter in verb.params:
            if parameter.param_type_name == "option" and parameter.name and parameter.opts:
                names.setdefault(parameter.name, max(parameter.opts, key=len))
    return names
