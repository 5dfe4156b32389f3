# syntax=docker/dockerfile:1

# Builds the package and installs it, as on any machine. Node 22 has an SQLite driver, so nothing is compiled.
FROM node:22-trixie-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates
WORKDIR /src
COPY . .
RUN node scripts/setup.mjs --run && npm pack --pack-destination /tmp
RUN npm install --global --prefix /opt/homeport --omit=dev --omit=optional /tmp/homeport-*.tgz

FROM node:22-trixie-slim
# util-linux has prlimit and setpriv, with which Homeport limits and ends engines; tini passes signals on.
RUN apt-get update \
  && apt-get install -y --no-install-recommends valkey-server util-linux tini ca-certificates \
  && rm -rf /var/lib/apt/lists/* \
  && groupadd --gid 10001 homeport \
  && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data homeport \
  && install -d -o homeport -g homeport -m 0700 /data
COPY --from=build /opt/homeport /opt/homeport
ENV PATH=/opt/homeport/bin:$PATH \
    NODE_ENV=production \
    HOMEPORT_DATA_DIR=/data \
    HOMEPORT_HOST=0.0.0.0 \
    # The container's network is not the internet: publish the ports on 127.0.0.1, or behind a proxy that ends TLS.
    HOMEPORT_PROXY_TERMINATES_TLS=true
USER homeport
WORKDIR /data
VOLUME /data
# Management API and console, REST, queue and workflows; the Redis ports of the first hundred databases.
EXPOSE 8700 8701 8702 8800-8899
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8700/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "homeport"]
CMD ["start"]
