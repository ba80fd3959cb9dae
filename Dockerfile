# docker build --build-arg VARIANT=cpu  -t attention-atlas .
# docker build --build-arg VARIANT=cuda -t attention-atlas:cuda .
# docker run --rm -p 127.0.0.1:8000:8000 -v atlas-cache:/cache attention-atlas          (cuda: add --gpus all)
#
# Reached under another name than localhost? Name it, and keep 127.0.0.1 for the health check:
#   -e ATLAS_ALLOWED_HOSTS=localhost,127.0.0.1,atlas.example.org
#
# TORCH_INDEX is the address of another package index for torch alone. On x86-64 the usual index has only the build with CUDA,
# which runs without a GPU but is gigabytes larger: for a small cpu image give the CPU index that PyTorch's installation page names.
ARG VARIANT=cpu
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
ARG TORCH_INDEX=""
RUN python -m venv /opt/atlas
ENV PATH=/opt/atlas/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
# The packages change rarely and the project often: this layer is reused until a pin changes.
COPY constraints.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --constraint constraints.txt ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch
COPY pyproject.toml README.md LICENSE ./
COPY scripts/wheel_assets.py scripts/
COPY app app
COPY model model
COPY static static
COPY templates templates
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --constraint constraints.txt pip hatchling \
    && pip install --constraint constraints.txt --no-build-isolation .

FROM python:${PYTHON}-slim AS base
RUN useradd --system --uid 10001 --no-create-home --home-dir /cache atlas && install --directory --owner=atlas --group=atlas /cache
COPY --from=build /opt/atlas /opt/atlas
# 0.0.0.0 is the container's own interface: what reaches it is what `docker run -p` publishes. Only these names are answered.
ENV PATH=/opt/atlas/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    ATLAS_HOST=0.0.0.0 \
    ATLAS_PORT=8000 \
    ATLAS_ALLOWED_HOSTS=localhost,127.0.0.1 \
    ATLAS_CACHE_DIR=/cache
# Code that runs models needs no right to write anywhere but to the cache.
USER atlas
WORKDIR /cache
VOLUME /cache
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as web; web.urlopen(f\"http://127.0.0.1:{os.environ['ATLAS_PORT']}/healthz\", timeout=4)"]
CMD ["attention-atlas", "serve"]

FROM base AS cpu
ENV ATLAS_DEVICE=cpu

# The same base image: torch brings CUDA's libraries itself and the container toolkit the driver, so a CUDA base image would
# carry them twice. The device is cuda and not auto, so that a container started without a GPU says so instead of being slow.
FROM base AS cuda
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility ATLAS_DEVICE=cuda

FROM ${VARIANT}
