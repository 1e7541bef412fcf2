# syntax=docker/dockerfile:1
FROM golang:1.26 AS build
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -tags timetzdata \
        -ldflags "-s -w -X main.version=${VERSION}" -o /out/bot ./cmd/bot
# The state directory, with its mode; ownership is given when it is copied.
RUN mkdir -p /root-fs/data /root-fs/tmp && chmod 0700 /root-fs/data /root-fs/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/bot /bot
COPY --from=build --chown=10001:10001 /root-fs/ /
USER 10001:10001
# Inside a container loopback reaches nobody, so the listener is opened to the container's network.
# Off loopback it demands a token: set OPENCLAW_GATEWAY_TOKEN, or gateway.token in /data/bot.yaml.
ENV HOME=/data \
    OPENCLAW_STATE_DIR=/data \
    OPENCLAW_GATEWAY_LISTEN=0.0.0.0:8787
VOLUME /data
EXPOSE 8787
# Running turns get 30 s to finish (shutdown.drain): stop with a grace of at least 35 s, for
# example docker stop -t 40.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["/bot", "health"]
ENTRYPOINT ["/bot"]
CMD ["run"]
