"""The model of a run, computed by torch, as an image model."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from newkind.errors import DataError
from newkind.export.onnx_model import Answers, ImageModel
from newkind.runs.model_io import LoadedModel
from newkind.training.inference import view_mean

__all__ = ["RunModel"]


class RunModel(ImageModel):
    """Model of a finished run.

    Parameters
    ----------
    model : LoadedModel
        As from `load_model`.

    Raises
    ------
    DataError
        With the code `wrong-input` for a run from features.
    """

    def __init__(self, model: LoadedModel) -> None:
        if model.backbone is None:
            raise DataError("The run was made from ready features and cannot predict images.", code="wrong-input")
        recipe = model.recipe
        categories = [(category.name, category.status) for category in model.categories]
        super().__init__(recipe, model.views, model.config.view_seed, categories)
        self._trunk, self._device, self._network = model.backbone.trunk, model.backbone.device, model.network.eval()
        self._layout = model.layout
        self._mean = torch.tensor(recipe.mean, device=self._device).view(1, 3, 1, 1)
        self._std = torch.tensor(recipe.std, device=self._device).view(1, 3, 1, 1)

    @torch.no_grad()
    def compute(self, pixels: NDArray[np.uint8]) -> Answers:
        n_views = pixels.shape[1]
        views = (
            torch.from_numpy(pixels).to(self._device).transpose(0, 1).flatten(0, 1)
        )  # (V * b, 3, S, S), view by view
        tokens = self._trunk((views.float() / 255 - self._mean) / self._std)
        features = view_mean(self._network.features(tokens), n_views)
        p = self._layout.probabilities(self._network.category_probabilities(features))
        outlier = self._network.method.is_outlier(features)
        return Answers(p.cpu().numpy(), None if outlier is None else outlier.cpu().numpy())
