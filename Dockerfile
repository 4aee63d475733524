# The daemon, and nothing else: `docker build -t agno-lark .`; how to run it is in the README, "Container".

FROM python:3.12-slim AS build
ENV UV_PROJECT_ENVIRONMENT=/opt/agno-lark \
    UV_PYTHON_DOWNLOADS=never \
    UV_LINK_MODE=copy \
    UV_COMPILE_BYTECODE=1
RUN pip install --no-cache-dir "uv>=0.7,<1"
WORKDIR /src
# Dependencies first: this layer is built anew only when one of these three files changes.
COPY pyproject.toml uv.lock .python-version ./
RUN uv sync --frozen --no-dev --no-install-project
COPY README.md LICENSE ./
COPY src ./src
RUN uv sync --frozen --no-dev --no-editable

FROM python:3.12-slim
RUN useradd --system --uid 10001 --user-group --home-dir /data --no-create-home --shell /usr/sbin/nologin agno-lark \
    && install -d -o agno-lark -g agno-lark -m 0700 /data
COPY --from=build /opt/agno-lark /opt/agno-lark
# Status and health routes stay on the container's loopback: the health check needs no more. Whoever publishes the port
# sets BRIDGE_HOST=0.0.0.0. `docker stop` kills after 10 s, so draining must take less.
ENV PATH=/opt/agno-lark/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    FEISHU_STATE_DB=/data/agno-feishu.sqlite3 \
    BRIDGE_DRAIN_TIMEOUT=6
WORKDIR /data
VOLUME ["/data"]
USER agno-lark
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=3 CMD ["agno-lark", "health"]
ENTRYPOINT ["agno-lark"]
