# A service for one exported model. It needs no torch: build the model with `newkind export RUN --format onnx --out model.onnx`.
#   docker build -t newkind .
#   docker run --rm -p 8643:8643 -v "$PWD/model.onnx:/model.onnx:ro" newkind
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
# Only what `newkind serve FILE.onnx` imports; torch and the rest of the dependencies are left out.
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir \
        "numpy>=1.26" "pillow>=10.3" "onnxruntime>=1.17" "starlette>=0.37" "uvicorn>=0.29" "python-multipart>=0.0.9" \
        "typer>=0.12.4" "rich>=13.7" "filelock>=3.12" \
    && pip install --no-cache-dir --no-deps /wheels/*.whl \
    && rm -rf /wheels \
    && useradd --system --uid 10001 newkind
USER 10001
EXPOSE 8643
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8643/healthz', timeout=4)"]
ENTRYPOINT ["newkind", "serve"]
CMD ["/model.onnx", "--host", "0.0.0.0"]
