# The images: `make images` builds both. They hold the programs, the shared libraries these need, and nothing else: no shell,
# no package manager. They run as user 65532 and never write to their root file system. /var/lib/dpkg/status.d and
# /usr/share/sbom say what is in them.
# The base is pinned by digest; IMAGE_BASE of deploy/images.sh names another, such as a mirror's or a newer one.
ARG BASE=debian:bookworm-slim@sha256:96e378d7e6531ac9a15ad505478fcc2e69f371b10f5cdf87857c4b8188404716
FROM ${BASE} AS packages
COPY make/deps.sh /src/make/deps.sh
RUN /src/make/deps.sh && apt-get install -y -qq --no-install-recommends ca-certificates >/dev/null && rm -rf /var/lib/apt/lists/*

FROM packages AS build
WORKDIR /src
COPY Makefile ./
COPY make/*.mk make/
COPY lib lib
COPY ps ps
COPY worker worker
COPY cli cli
ARG JOBS=2
RUN make -j"$JOBS" BUILD=/build /build/bin/trainyard /build/bin/trainyard-ps /build/bin/trainyard-worker

FROM build AS build-operator
COPY operator operator
RUN make -j"$JOBS" BUILD=/build /build/bin/trainyard-operator

FROM build AS trainer-root
COPY deploy/image_root.sh deploy/
COPY deploy/examples/digits /image/data/digits
RUN deploy/image_root.sh /image /build/bin/trainyard /build/bin/trainyard-ps /build/bin/trainyard-worker

FROM build-operator AS operator-root
COPY deploy/image_root.sh deploy/
RUN deploy/image_root.sh /image /build/bin/trainyard-operator /etc/ssl/certs/ca-certificates.crt

# What pods of a job run: trainyard-ps, trainyard-worker, trainyard; /data/digits is the data of deploy/examples/digits.yaml.
FROM scratch AS trainer
COPY --from=trainer-root /image /
ENV PATH=/usr/bin
USER 65532:65532
CMD ["trainyard", "--help"]

FROM scratch AS operator
COPY --from=operator-root /image /
ENV PATH=/usr/bin
USER 65532:65532
ENTRYPOINT ["trainyard-operator"]
