# The service from this folder: docker build -t shortlist .
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/shortlist && /opt/shortlist/bin/pip install --no-cache-dir --constraint constraints.txt '.[serve,postgres]'

FROM python:3.12-slim
COPY --from=build /opt/shortlist /opt/shortlist
RUN useradd --system --uid 10001 --home-dir /data shortlist && install -d -o shortlist /data
USER shortlist
WORKDIR /data
VOLUME /data
EXPOSE 8765
ENV SHORTLIST_STORE=/data/tests.db
STOPSIGNAL SIGTERM
HEALTHCHECK CMD ["/opt/shortlist/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8765/ready')"]
ENTRYPOINT ["/opt/shortlist/bin/shortlist"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8765"]
