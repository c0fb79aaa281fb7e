"""What a run says about its confidences: whether they are calibrated, their error, and a threshold of novelty."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from newkind.evaluation import calibration_error, novelty_threshold
from newkind.methods.method import Method

__all__ = ["confidence_card"]


def confidence_card(method: Method) -> dict[str, Any]:
    """Entry `confidence` of model.json.

    Parameters
    ----------
    method : Method
        A method after `calibrate`.

    Returns
    -------
    dict
        `calibrated`, `temperature` and `smoothing`. If it is calibrated also what the rehearsal showed: number of images and folds,
        accuracy, `calibration_error` (each fold with the read-out of the others), the same before calibration, and `novelty`, the
        recommended threshold with its error rates. Otherwise the `reason`.
    """
    found = method.rehearsal
    read_out = {"temperature": method.temperature, "smoothing": method.smoothing}
    if found is None:
        calibrates = type(method).calibrate is not Method.calibrate
        reason = "too few labelled images" if calibrates else "this method has no calibration"
        return {"calibrated": False, "reason": reason, **read_out}
    right = found.is_right
    novelty = novelty_threshold(~found.is_new, found.novelty())
    return {
        "calibrated": True,
        **read_out,
        "n_images": len(right),
        "n_folds": len(found.folds),
        "accuracy": float(right.mean()),
        "calibration_error": calibration_error(found.held_out_confidence(), right),
        "raw_calibration_error": calibration_error(found.confidence(found.raw), right),
        "novelty": None if novelty is None else asdict(novelty),
    }
