# Images of the two programs: targets `coordinator` (no GPU needed) and `worker`.
#
#   docker build --target coordinator -t hyperopt .
#   docker build --target worker -t hyperopt-worker .                       # CPU backend
#   docker build --target worker -t hyperopt-worker-cuda . \
#       --build-arg BUILD_IMAGE=nvidia/cuda:13.0.1-devel-ubuntu24.04 \
#       --build-arg RUNTIME_IMAGE=nvidia/cuda:13.0.1-runtime-ubuntu24.04 \
#       --build-arg CUDA=ON
#
# BUILD_IMAGE and RUNTIME_IMAGE must be of one distribution (Debian 12 or 13, Ubuntu 22.04, 24.04).
ARG BUILD_IMAGE=debian:12-slim
ARG RUNTIME_IMAGE=debian:12-slim

FROM ${BUILD_IMAGE} AS build
ARG CUDA=OFF
ARG CUDA_ARCHITECTURES="80;86;89;90a;120"
WORKDIR /src
COPY tools tools
RUN tools/install-packages.sh build libraries && rm -rf /var/lib/apt/lists/*
COPY . .
RUN tools/image-build.sh /opt/hyperopt "${CUDA}" "${CUDA_ARCHITECTURES}"

FROM ${RUNTIME_IMAGE} AS runtime
COPY tools/packages.txt tools/install-packages.sh /tmp/tools/
RUN /tmp/tools/install-packages.sh runtime \
    && rm -rf /tmp/tools /var/lib/apt/lists/* \
    && groupadd --gid 10001 hyperopt \
    && useradd --uid 10001 --gid 10001 --create-home hyperopt \
    && mkdir /work \
    && chown 10001:10001 /work
COPY --from=build /opt/hyperopt/ /usr/local/
USER 10001:10001
WORKDIR /work
ENV XDG_CACHE_HOME=/work/.cache

FROM runtime AS coordinator
EXPOSE 5555 9464
VOLUME /work
# The metrics port answers while the event loop turns (coordinator.metrics = "0.0.0.0:9464").
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["hyperopt-healthcheck", "127.0.0.1", "9464"]
ENTRYPOINT ["hyperopt"]
CMD ["--help"]

FROM runtime AS worker
# Leaves with 0 as long as the device answers.
HEALTHCHECK --interval=60s --timeout=20s CMD ["hyperopt-worker", "--devices"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["hyperopt-worker"]
CMD ["--help"]
