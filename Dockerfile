# The service: docker build -t contrafact . ; see docs/service.md
FROM python:3.12-slim

RUN useradd --create-home --uid 10001 contrafact
WORKDIR /source
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir ".[web,files]"

USER contrafact
WORKDIR /data
ENV OMP_NUM_THREADS=1
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["contrafact", "serve", "--host", "0.0.0.0"]
