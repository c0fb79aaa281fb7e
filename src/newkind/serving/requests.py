"""Images of a request: multipart files, JSON with base64, or one image as the body."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

__all__ = ["read_images"]

MAX_IMAGES = 256
"""Most images of one request."""


async def read_images(request: Request) -> list[tuple[str, bytes]]:
    """Name and content of each image, in order.

    Raises
    ------
    HTTPException
        With the status 400 for a body that cannot be read, 413 for too many images, 415 for another type.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        found = await _from_form(request)
    elif kind == "application/json":
        found = _from_json(await request.body())
    elif kind.startswith("image/") or kind == "application/octet-stream":
        found = [("image", await request.body())]
    else:
        raise HTTPException(415, "Send multipart/form-data with files, application/json, or one image as the body.")
    if not found:
        raise HTTPException(400, "The request contains no image.")
    if len(found) > MAX_IMAGES:
        raise HTTPException(413, f"A request may contain at most {MAX_IMAGES} images.")
    return found


async def _from_form(request: Request) -> list[tuple[str, bytes]]:
    try:
        async with request.form(max_files=MAX_IMAGES, max_fields=MAX_IMAGES) as form:
            files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
            return [(file.filename or f"image-{i}", await file.read()) for i, file in enumerate(files)]
    except (MultiPartException, ValueError, KeyError) as error:
        raise HTTPException(400, f"The form cannot be read ({error}).") from None


def _from_json(body: bytes) -> list[tuple[str, bytes]]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"The body is not JSON ({error}).") from None
    images = content.get("images") if isinstance(content, dict) else None
    if not isinstance(images, list):
        raise HTTPException(400, 'The body must be {"images": [{"name": ..., "data": BASE64}, ...]}.')
    return [_from_entry(i, entry) for i, entry in enumerate(images)]


def _from_entry(number: int, entry: Any) -> tuple[str, bytes]:
    about = entry if isinstance(entry, dict) else {"data": entry}
    name, data = about.get("name", f"image-{number}"), about.get("data")
    if not isinstance(name, str) or not isinstance(data, str):
        raise HTTPException(400, f"Image {number} needs `data` as a text in base64; its name must be a text.")
    try:
        return name, base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise HTTPException(400, f"Image {number} is not base64 ({error}).") from None
