# syntax=docker/dockerfile:1

# Builds the pages and the server with the usual commands.
FROM rust:1.95-trixie AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends nodejs npm \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
RUN cargo xtask build --release \
    && cargo build --release --locked --package planscope-server --bin planscope \
    && strip --strip-debug target/release/planscope

# Runtime image: the program and the pages, without build tools, with an unprivileged user.
FROM debian:trixie-slim
RUN useradd --system --uid 10001 --home-dir /data planscope \
    && install --directory --owner=planscope /data
COPY --from=build /build/target/release/planscope /usr/local/bin/planscope
COPY --from=build /build/target/web /usr/local/share/planscope/web
ENV PLANSCOPE_ADDRESS=0.0.0.0:8080 \
    PLANSCOPE_DATABASE=/data/planscope.db \
    PLANSCOPE_WEB=/usr/local/share/planscope/web
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s CMD ["planscope", "health"]
ENTRYPOINT ["planscope"]
CMD ["serve"]
