"""Weights from files: what fits, what does not, and what is damaged. The model hub is never used here."""

import errno
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file

from error_codes import raises
from newkind.backbone import weights, weights_wheel
from newkind.backbone.weights import list_stored, load_vit, state_hash
from newkind.backbone.weights_file import read_weights
from newkind.errors import WeightsError

NAME = "vit_tiny_patch16_224"


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    return timm.create_model(NAME, pretrained=False, num_classes=10, img_size=64).state_dict()


def test_safetensors_and_pth_give_the_same_model(tmp_path: Path, state) -> None:
    save_file(state, tmp_path / "w.safetensors")
    torch.save({"state_dict": {f"module.{k}": v for k, v in state.items()}}, tmp_path / "w.pth")
    a = load_vit(NAME, image_size=64, weights=tmp_path / "w.safetensors")
    b = load_vit(NAME, image_size=64, weights=tmp_path / "w.pth")
    assert a.sha256 == b.sha256
    assert torch.equal(a.model.blocks[3].attn.qkv.weight, state["blocks.3.attn.qkv.weight"])
    assert a.source.endswith("w.safetensors")


def test_positions_are_resampled_to_the_image_size(tmp_path: Path, state) -> None:
    save_file(state, tmp_path / "w.safetensors")
    loaded = load_vit(NAME, image_size=32, weights=tmp_path / "w.safetensors")
    assert loaded.model.pos_embed.shape == (1, 5, 192)
    assert torch.equal(loaded.model.pos_embed[:, 0], state["pos_embed"][:, 0])


def test_the_hash_is_of_the_parameters() -> None:
    models = [load_vit(NAME, image_size=32, random=True, seed=seed) for seed in (0, 0, 1)]
    assert models[0].sha256 == models[1].sha256 != models[2].sha256
    with torch.no_grad():
        models[1].model.norm.bias[0] += 1e-6
    assert state_hash(models[1].model) != models[0].sha256


def test_another_architecture(tmp_path: Path, state) -> None:
    save_file(state, tmp_path / "w.safetensors")
    with raises(WeightsError, "wrong-architecture") as caught:
        load_vit("vit_small_patch16_224", image_size=64, weights=tmp_path / "w.safetensors")
    assert caught.value.facts["name"] == "vit_small_patch16_224"
    del state["blocks.0.norm1.weight"]
    save_file(state, tmp_path / "v.safetensors")
    with raises(WeightsError, "wrong-architecture") as caught:
        load_vit(NAME, image_size=64, weights=tmp_path / "v.safetensors")
    assert caught.value.facts["missing"] == ["blocks.0.norm1.weight"]


@pytest.mark.parametrize("suffix", ["safetensors", "pth"])
def test_truncated_files(tmp_path: Path, state, suffix: str) -> None:
    path = tmp_path / f"w.{suffix}"
    if suffix == "pth":
        torch.save(state, path)
    else:
        save_file(state, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with raises(WeightsError, "damaged"):
        load_vit(NAME, image_size=64, weights=path)


class Evil:
    def __reduce__(self):
        return (Path.touch, (Path("owned"),))


@pytest.mark.parametrize("instruction", [b"R", b"a", b"s", b"u", b"t", b"h\x07", b"0", b"b", b"X\xff\xff\xff\x7f"])
def test_a_damaged_pickle(tmp_path: Path, instruction: bytes) -> None:
    """Instructions that take more from the stack than there is, and the like; also with something on it."""
    for before in (b"", b"]", b"}K\x01", b"(K\x01"):
        (tmp_path / "w.pth").write_bytes(b"\x80\x02" + before + instruction + b".")
        with raises(WeightsError, "damaged"):
            read_weights(tmp_path / "w.pth")


def test_a_file_with_code_in_it_is_refused_and_not_run(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"model": Evil()}, tmp_path / "w.pth")
    with raises(WeightsError, "damaged"):
        load_vit(NAME, image_size=64, weights=tmp_path / "w.pth")
    (tmp_path / "x.pth").write_bytes(pickle.dumps(Evil(), protocol=2))
    with raises(WeightsError, "damaged"):
        load_vit(NAME, image_size=64, weights=tmp_path / "x.pth")
    assert not Path("owned").exists()


def test_no_file_no_state_dict(tmp_path: Path) -> None:
    with raises(WeightsError, "weights-missing"):
        load_vit(NAME, image_size=64, weights=tmp_path / "none.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    with raises(WeightsError, "no-state-dict"):
        load_vit(NAME, image_size=64, weights=tmp_path / "list.pth")


def test_nothing_on_this_machine_and_no_hub(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path))
    monkeypatch.setattr(weights, "_hub_file", lambda *_, **__: None)
    with raises(WeightsError, "weights-missing") as caught:
        load_vit(NAME, image_size=64)
    assert caught.value.facts["name"] == NAME


@pytest.mark.parametrize("download", [True, False])
def test_a_backbone_without_weights_anywhere(tmp_path: Path, monkeypatch, download: bool) -> None:
    """Without a download, too: a dry run must not promise one."""
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path))
    monkeypatch.setattr(weights, "_hub_id", lambda _: None)
    with raises(WeightsError, "weights-missing") as caught:
        load_vit(NAME, image_size=64, download=download)
    assert caught.value.facts["name"] == NAME


def test_weights_from_a_wheel_are_saved_and_found_again(tmp_path: Path, monkeypatch) -> None:
    torch.manual_seed(0)
    small = timm.create_model(weights_wheel.WHEEL_BACKBONE, pretrained=False, num_classes=0, img_size=518).state_dict()
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path))
    monkeypatch.setattr(weights, "_hub_file", lambda *_, **__: None)
    fetched: list[int] = []
    monkeypatch.setattr(weights, "fetch_from_wheel", lambda: fetched.append(1) or dict(small))
    first = load_vit(weights_wheel.WHEEL_BACKBONE, image_size=28)
    second = load_vit(weights_wheel.WHEEL_BACKBONE, image_size=28)
    assert first.sha256 == second.sha256
    assert len(fetched) == 1
    assert [stored.name for stored in list_stored()] == [weights_wheel.WHEEL_BACKBONE]


def test_weights_that_cannot_be_stored(tmp_path: Path) -> None:
    """No file may grow beyond a limit, as on a full disk."""
    program = (
        "import resource, sys\nfrom pathlib import Path\nimport torch\nfrom newkind.backbone.weights import _store\n"
        "from newkind.errors import WeightsError\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try:\n    _store(Path(sys.argv[1]) / 'w.safetensors', {'a': torch.zeros(5000)}, source='x')\n"
        "except WeightsError as error:\n    sys.exit(error.code)\n"
    )
    for folder in (tmp_path / "weights", Path("/proc/weights")):
        command = [sys.executable, "-c", program, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert (done.returncode, done.stderr.strip()) == (1, "cannot-write")
    assert [path.name for path in (tmp_path / "weights").iterdir()] == ["w.json"]


def test_a_full_disk_is_not_taken_for_a_missing_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub

    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", full)
    with raises(WeightsError, "cannot-write"):
        load_vit("vit_tiny_patch16_224", image_size=224)
