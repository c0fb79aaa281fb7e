"""Sentences about the confidences of a run, for the terminal and the report."""

from __future__ import annotations

from typing import Any

__all__ = ["calibration_text", "novelty_text", "read_share", "sure_text"]


def calibration_text(card: dict[str, Any]) -> str:
    """Whether confidences are calibrated, and how well, from the entry `confidence` of model.json."""
    if card.get("calibrated") is True:
        error, before = (read_share(card.get(name)) for name in ("calibration_error", "raw_calibration_error"))
        if error is None or before is None:
            return "Confidences are calibrated."
        return (
            f"Confidences are calibrated on held-out known classes, with a calibration error of {error:.3f} there "
            f"({before:.3f} before)."
        )
    reason = card.get("reason")
    return f"Confidences are not calibrated: {reason}." if isinstance(reason, str) else ""


def novelty_text(card: dict[str, Any]) -> str:
    """The recommended threshold of novelty with its error rates, from the entry `confidence` of model.json."""
    found = card.get("novelty")
    if not isinstance(found, dict):
        return ""
    threshold, known, new = (read_share(found.get(name)) for name in ("threshold", "false_known", "false_new"))
    if threshold is None or known is None or new is None:
        return ""
    return (
        f"Call an image new from a novelty of {threshold:.2f} on: on held-out known classes, {100 * known:.0f} % of new images "
        f"were below it and {100 * new:.0f} % of known ones above."
    )


def sure_text(found: Any) -> str:
    """Coverage and accuracy of the sure images, from the entry `sure` of scores.json."""
    if not isinstance(found, dict):
        return ""
    coverage, right = (read_share(found.get(name)) for name in ("coverage", "by_name"))
    if coverage is None or right is None:
        return ""
    return f"{100 * coverage:.0f} % of images are sure, {100 * right:.1f} % of them correct by name."


def read_share(value: object, *, least: float = 0.0) -> float | None:
    """Return a number between `least` and 1; None for anything else that a file may contain."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if least <= value <= 1 else None
