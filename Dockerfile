# The binary and nothing else: `bun run build`, then `docker build -t cairn .`
FROM debian:bookworm-slim
RUN useradd --system --home-dir /var/lib/cairn --create-home cairn
COPY dist/cairn /usr/local/bin/cairn
USER cairn
WORKDIR /var/lib/cairn
ENV DATA_DIR=/var/lib/cairn HOST=0.0.0.0 LOG_FORMAT=json
VOLUME /var/lib/cairn
EXPOSE 3000 3001 3002
ENTRYPOINT ["cairn"]
CMD ["serve"]
