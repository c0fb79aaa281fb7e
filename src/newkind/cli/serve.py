"""`newkind serve`: a model over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import MinConfidence

if TYPE_CHECKING:
    from newkind.export.onnx_model import ImageModel

__all__ = ["serve"]


def serve(
    model: Annotated[Path, typer.Argument(help="A run folder, or an .onnx file written by newkind export.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on. 0.0.0.0 for all addresses of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for a free one.", min=0, max=65535)] = 8643,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Further name under which clients reach the service; repeat it.")
    ] = None,
    max_queue: Annotated[
        int, typer.Option(help="Maximum number of images in the queue; requests beyond it get 503.", min=1)
    ] = 256,
    max_body: Annotated[int, typer.Option(help="Maximum size of a request in megabytes.", min=1)] = 32,
    max_wait: Annotated[
        int, typer.Option(help="Milliseconds that an image waits for others, to be computed together.", min=0)
    ] = 10,
    min_confidence: MinConfidence = 0.0,
    weights: Annotated[
        Path | None, typer.Option(help="File with the weights of the backbone, if it was moved.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device of a run: cpu, cuda, mps or auto.")] = "auto",
) -> None:
    """Answer requests for predictions over HTTP. SIGTERM or Ctrl-C stops it after requests in progress are answered."""
    from newkind.cli.messages import print_line
    from newkind.progress import status_console
    from newkind.serving.app import ServiceOptions
    from newkind.serving.serve import serve as run_service
    from newkind.setting import check_min_confidence

    check_min_confidence(min_confidence)
    options = ServiceOptions(
        host=host,
        allow_hosts=tuple(allow_host or ()),
        max_queue=max_queue,
        max_body=max_body * 1_000_000,
        max_wait=max_wait / 1000,
        min_confidence=min_confidence,
    )

    def ready(address: str) -> None:
        import sys

        print_line(f"{address}/predict")
        sys.stdout.flush()
        status_console().print("Press Ctrl-C to stop.")

    run_service(_open(model, weights, device), options, port=port, ready=ready)


def _open(model: Path, weights: Path | None, device: str) -> ImageModel:
    """Model of a file, without torch, or of a run."""
    from newkind.export.onnx_model import OnnxModel

    if model.suffix.lower() == ".onnx":
        return OnnxModel(model)
    from newkind.runs.model_io import load_model
    from newkind.runs.run import Run
    from newkind.serving.run_model import RunModel

    return RunModel(load_model(Run.open(model), device=device, weights=weights))
