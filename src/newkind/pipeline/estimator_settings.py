"""Parameters of a scikit-learn estimator, from the run folder that it was saved to."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from newkind.methods.registry import find_method
from newkind.runs.current_answer import current_answer
from newkind.runs.run import Run

__all__ = ["estimator_settings"]

RECIPES = {"modern": "modern", "simgcd": "release"}
TRAINING = ("epochs", "batch_size", "learning_rate")
BACKBONE = ("weights", "random_weights", "image_size", "views", "tuned_blocks", "device")


def estimator_settings(run: Run) -> tuple[str, dict[str, Any]]:
    """Name of the method that has an estimator, and the parameters of that estimator.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    method : str
        `simgcd` also for its recipe `modern`.
    parameters : dict
        Parameters of the constructor, by name.
    """
    content, config = run.config(), run.settings()
    name, training, backbone = config["method_name"], config["training"], config["backbone"]
    usual = find_method(name).config()
    changed = {
        item.name: config["method"][item.name]
        for item in fields(usual)
        if item.name in config["method"] and config["method"][item.name] != getattr(usual, item.name)
    }
    used = content["n_categories"].get("used")
    parameters = {
        "n_categories": len(current_answer(run).categories) if used is None else used,
        "recipe": RECIPES.get(name),
        "effort": config.get("effort"),
        "settings": changed or None,
        "random_state": training["seed"],
        "backbone": backbone["name"],
    }
    parameters |= {key: training[key] for key in TRAINING} | {key: backbone[key] for key in BACKBONE}
    return "simgcd" if name == "modern" else name, parameters
