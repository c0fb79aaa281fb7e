"""Run folders of format 1 (Newkind 0.1.0 before its first release), read as the current format."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from newkind.errors import RunError

__all__ = ["upgrade_card", "upgrade_config"]

BACKBONE_NAMES = {"backbone": "name", "n_views": "views", "n_tuned": "tuned_blocks", "seed": "view_seed"}
TRAINING_NAMES = {"n_views": "views_per_step"}


def upgrade_config(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """Content of a config.json of format 1 in the current format; nothing is written."""
    try:
        old = content["config"]
        k = int(old["method"]["n_categories"])
        rule = "estimated" if old.get("auto_k") else "at-most" if old.get("k_is_room") else "fixed"
        name, method = _method(old["method_name"], old["method"])
        config = {
            "method_name": name,
            "method": method,
            "n_categories": {"rule": rule, "number": None if rule == "estimated" else k, "from_truth": False},
            "training": _renamed(old["training"], TRAINING_NAMES),
            "backbone": _renamed(old["trunk"], BACKBONE_NAMES),
            "online": old["online"],
        }
        return content | {"config": config, "n_categories": {}}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"{path} cannot be read ({error!r}).", code="unreadable", file=path) from None


def upgrade_card(card: dict[str, Any]) -> dict[str, Any]:
    """Content of a model.json of format 1 in the current format."""
    name, method = _method(card["method"], card["method_config"])
    return {
        "method": name,
        "method_config": method,
        "n_categories": card["method_config"]["n_categories"],
        "backbone": _renamed(card["trunk"], BACKBONE_NAMES),
        **{key: card[key] for key in ("weights_sha256", "weights_source", "dim", "n_known")},
    }


def _method(name: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and settings of a method; SimGCD with a frame has become `modern`."""
    from newkind.methods.registry import find_method

    name = "modern" if name == "simgcd" and settings.get("frame") else name
    known = {item.name for item in fields(find_method(name).config)}
    return name, {key: value for key, value in settings.items() if key in known}


def _renamed(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in values.items()}
