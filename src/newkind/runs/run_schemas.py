"""Schemas of the JSON files of a run folder, which may come from somebody else."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

__all__ = [
    "CategoriesFile",
    "CategoryRow",
    "CompleteFile",
    "ContinuedFile",
    "EstimateFile",
    "MetricsRow",
    "ModelCard",
    "RunConfigFile",
    "SettingsFile",
]


class AssignmentsRecord(TypedDict):
    """What config.json says about assignments.csv."""

    rows: int
    sha256: str


class RunConfigFile(TypedDict):
    """config.json, in the current format."""

    format: int
    fingerprint: str
    newkind: NotRequired[str]
    data: NotRequired[str | None]
    root: NotRequired[str | None]
    reading: NotRequired[dict[str, str | float]]
    added: NotRequired[list[str]]
    group_column: NotRequired[str | None]
    config: NotRequired[dict[str, Any]]
    n_categories: NotRequired[dict[str, Any]]
    answer: NotRequired[Literal["first", "final"]]
    assignments: NotRequired[AssignmentsRecord]
    checksums: NotRequired[dict[str, str]]


class _Training(TypedDict):
    seed: int


class _Backbone(TypedDict):
    name: str


class SettingsFile(TypedDict):
    """What is read of the entry `config` of config.json."""

    method_name: str
    method: dict[str, Any]
    training: _Training
    backbone: _Backbone
    min_confidence: NotRequired[float]


class CompleteFile(TypedDict):
    """The list of files of an answer that is complete."""

    files: list[str]


class ContinuedFile(TypedDict):
    """continued.json."""

    run: str
    new_rows: list[int]
    missing: list[str]
    opened: list[str]
    gone: list[str]
    n_moved: int
    n_copies: int


class CategoryRow(TypedDict):
    """One category of categories.json."""

    name: str
    status: str
    prototype: int
    n_images: int
    mean_confidence: float
    n_unsure: NotRequired[int]
    id: NotRequired[str]
    approved: NotRequired[bool]
    prototypes: NotRequired[list[int]]
    given: NotRequired[bool]


class CategoriesFile(TypedDict):
    """categories.json."""

    categories: list[CategoryRow]


class ModelCard(TypedDict):
    """model.json, in the current format."""

    method: str
    method_config: dict[str, Any]
    n_categories: int
    backbone: dict[str, Any]
    weights_sha256: str | None
    dim: int
    n_known: int
    weights_source: NotRequired[str | None]
    mean: NotRequired[list[float]]
    std: NotRequired[list[float]]
    model_sha256: NotRequired[str]
    package: NotRequired[str]
    views: NotRequired[list[int]]


class EstimateFile(TypedDict):
    """estimate-k.json."""

    n_categories: int
    low: int
    high: int
    n_known: int
    way: str
    quality: float
    curve: list[list[float]]
    known_share: NotRequired[float]


class MetricsRow(TypedDict):
    """A row of metrics.jsonl."""

    epoch: int
    seconds: NotRequired[float]
