# The tests and the checks that every change needs.
default: test lint

# The ordinary tests, in parallel.
test *options:
    uv run pytest {{ options }}

# The long ones: 10,000 generated histories, a 100 MB session, the real client.
slow:
    uv run pytest -m slow -n 2

lint:
    uv run ruff check
    uv run ruff format --check
    uv run mypy

fix:
    uv run ruff check --fix
    uv run ruff format

# Ratios against orjson within one run.
bench:
    uv run python benchmarks/bench_cut.py

# What the project's CI runs.
ci:
    .ci/run
