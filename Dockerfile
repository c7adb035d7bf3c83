# The server as an image: `make image`. It runs as any user but root, writes nothing outside of /var/lib/arco and /tmp,
# and listens on all addresses of its container: publish the port on loopback, or behind something that authenticates.
# --build-arg ARCO_EXTRAS=gcs leaves out the libraries of others: extras of pyproject.toml, joined by commas.
# The digest is that of the index of all platforms. `docker buildx imagetools inspect python:3.11-slim-bookworm` prints
# the newest, with Debian's security updates: replace it before a release.
ARG PYTHON=3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM python:${PYTHON} AS build
ARG ARCO_EXTRAS=s3,gcs,azure,kafka
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements/bootstrap.txt requirements/serve.txt requirements/
COPY pyproject.toml ./
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --only-binary :all: --requirement requirements/bootstrap.txt \
 && python -m venv --without-pip /opt/arco \
 && /opt/build/bin/uv pip install --python /opt/arco/bin/python --require-hashes --only-binary :all: \
      --constraint requirements/serve.txt --requirement pyproject.toml --extra serve --extra cli --extra auth \
      $(echo ",$ARCO_EXTRAS" | sed 's/,/ --extra /g')
COPY CHANGELOG.md LICENSE MANIFEST.in NOTICE README.md ./
COPY arco_catalog arco_catalog
COPY reconciler reconciler
COPY storage_backends storage_backends
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /data . \
 && /opt/build/bin/uv pip install --python /opt/arco/bin/python --no-deps /data/*.whl \
 && /opt/arco/bin/python -m compileall -q /opt/arco/lib \
 && rm /data/*

FROM python:${PYTHON}
COPY --from=build /opt/arco /opt/arco
COPY --from=build --chown=65532:65532 /data /var/lib/arco
ENV PATH=/opt/arco/bin:$PATH PYTHONDONTWRITEBYTECODE=1 HOME=/tmp \
    ARCO_HOST=0.0.0.0 ARCO_PORT=8181 ARCO_STORE=file:/var/lib/arco ARCO_QUIET=true
USER 65532:65532
WORKDIR /tmp
EXPOSE 8181
VOLUME /var/lib/arco
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["/opt/arco/bin/python", "-c", "import os, urllib.request; urllib.request.urlopen(f\"http://127.0.0.1:{os.environ['ARCO_PORT']}/health\", timeout=4)"]
ENTRYPOINT ["/opt/arco/bin/arco"]
CMD ["serve"]
