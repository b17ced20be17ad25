# syntax=docker/dockerfile:1
# Two images from one build:
#   docker build --build-arg COMMIT=$(git rev-parse HEAD) --target worker  -t reprise-worker .
#   docker build --build-arg COMMIT=$(git rev-parse HEAD) --target starter -t reprise-starter .

FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# What starter version and worker --version say: the build has no repository to read it from.
ARG COMMIT=
# Without cgo the binaries run on any base image.
# The tag adds payload stores in Google Cloud Storage and Azure.
RUN CGO_ENABLED=0 go build -tags allclouds -trimpath -ldflags "-s -w -X reprise/internal/base/build.commit=$COMMIT" -o /out/ ./worker ./starter

FROM alpine:3.23.4 AS base
# HTTPS needs certificates, and date functions need time zones.
RUN apk add --no-cache ca-certificates tzdata \
    && addgroup -g 10001 reprise \
    && adduser -D -u 10001 -G reprise reprise
USER reprise
WORKDIR /home/reprise

FROM base AS starter
COPY --from=build /out/starter /usr/local/bin/starter
ENTRYPOINT ["/usr/local/bin/starter"]
CMD ["--help"]

# Last, so that a build without --target produces it.
FROM base AS worker
USER root
# For the python tool, which a worker runs only with --allow-python.
RUN apk add --no-cache python3
USER reprise
COPY --from=build /out/worker /usr/local/bin/worker
ENTRYPOINT ["/usr/local/bin/worker"]
