# Two commands do everything on a fresh machine: `make demo` and `make test`.

.PHONY: demo test tools lint typescript editor audit bench clean

# Check the examples, then profile one on whatever hardware is here.
demo:
	@.ci/venv demo
	@echo; echo '$$ rooflint check examples/'
	@.venv/bin/rooflint check examples/ || [ $$? -eq 1 ]
	@echo; echo '$$ rooflint profile examples/train.py'
	@.venv/bin/rooflint profile examples/train.py
	@echo; echo 'The same script without its faults is examples/train_fixed.py: .venv/bin/rooflint profile examples/train_fixed.py'

# All tests, the editor's among them; what they need is installed and kept between runs.
# What fails is run once more, alone: some tests look at a clock, and the machine may be busy.
test: lint typescript editor
	.venv/bin/pytest || { [ $$? -eq 1 ] && .venv/bin/pytest --last-failed --last-failed-no-failures none; }

tools:
	@.ci/venv dev

lint: tools
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright
	.venv/bin/lint-imports

node_modules/.ready: package-lock.json
	@command -v npm > /dev/null || { echo 'rooflint: npm was not found: install Node.js 20 or newer and run make again.' >&2; exit 1; }
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || { echo 'rooflint: Node.js 20 or newer is needed: install it and run make again.' >&2; exit 1; }
	npm ci
	@touch $@

typescript: node_modules/.ready
	npm run --silent lint
	npm run --silent typecheck
	npm run --silent test:unit

editor: tools node_modules/.ready
	tests/editor/setup.sh
	npm run --silent package

# Known weaknesses of what is pinned, where the package indexes tell; asks the network.
audit: node_modules/.ready
	.ci/audit

# How fast it is, beside other tools; takes an hour and writes docs/benchmarks.md.
bench: tools
	.venv/bin/python -m tests.bench

clean:
	rm -rf .venv .cache .ruff_cache .pytest_cache .import_linter_cache node_modules dist bundled *.vsix
	find analyzers server tests examples extension -name __pycache__ -prune -exec rm -rf {} +
