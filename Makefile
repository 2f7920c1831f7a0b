# make setup   virtual environment, native module and static agent: leaves .venv/bin/tailtrim
# make demo    a live experiment on this machine, its table and its report
# make dist    what others install, in dist/: the wheel, the static agent, its Debian package
# make test    what every change has to pass: check, Rust, Python, a small laboratory (CONTRIBUTING.md has the suites)
# make test-lab test-faults test-reflectors test-guests test-simulations test-engines test-packages test-long test-speed   the other suites
# make test-all   all of them
# make check   formatting, lints, types, import layers, lengths, licences, advisories
# make bench   time the parts and whole processes beside their peers
# make bench-gate   compare ratios beside peers with the record of this processor: some minutes
# make docs    the documentation site, offline, in target/docs/site, and man pages in target/docs/man
# make fuzz    run every fuzz target (RUNS=10000000)
# make clean   remove what the above made

PYTHON ?= python3
RUNS ?= 10000000
VENV := .venv
# What tests run: compiled for short compilation, with all checks. Nothing is measured with it.
TEST := target/test
# Folders whose comments begin with a noun or a verb; the others follow.
WORDED := crates dpdk python plugins tests benchmarks fuzz packaging
SUITES := lab faults reflectors guests simulations engines packages long speed
# A lock names all that is needed. Modules are compiled when they are used first.
LOCKED := --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes
RUST := .cargo/config.toml Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name '*.[ch]' -o -name '*.json' -o -name Cargo.toml)

# Python packages are unpacked while cargo compiles. Cargo counts its own jobs.
MAKEFLAGS += --jobs=2
export CARGO_MAKEFLAGS :=
# Programs of the environment first.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
test test-% check format docs: export PATH := $(CURDIR)/$(TEST)/bin:$(PATH)

.PHONY: setup demo dist test $(SUITES:%=test-%) test-all test-shard check format bench bench-gate docs fuzz clean
.DELETE_ON_ERROR:

setup: $(VENV)/package.stamp

target/prerequisites.stamp: packaging/prerequisites.sh
	packaging/prerequisites.sh build
	mkdir -p target
	touch $@

$(VENV)/requirements.stamp: requirements.lock target/prerequisites.stamp
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install $(LOCKED) --requirement requirements.lock
	touch $@

target/release/built.stamp: $(RUST) target/prerequisites.stamp
	MAKEFLAGS= cargo build --release --locked --package tailtrim-agent --package tailtrim-python
	touch $@

$(VENV)/package.stamp: $(VENV)/requirements.stamp target/release/built.stamp packaging/environment.sh $(wildcard plugins/*/pyproject.toml)
	packaging/environment.sh $(VENV) target/release python
	touch $@

$(TEST)/requirements.stamp: requirements-test.lock target/prerequisites.stamp
	test -x $(TEST)/bin/python || $(PYTHON) -m venv $(TEST)
	$(TEST)/bin/pip install $(LOCKED) --requirement requirements-test.lock
	touch $@

target/debug/built.stamp: $(RUST) target/prerequisites.stamp
	MAKEFLAGS= cargo build --workspace --lib --bins --tests --locked
	touch $@

# New files of the package are linked each time.
.PHONY: test-environment
test-environment: $(TEST)/requirements.stamp target/debug/built.stamp
	packaging/environment.sh $(TEST) target/debug $(TEST)/packages

# Live, as root or in a user namespace: a minute. An earlier one makes room.
demo: setup
	packaging/prerequisites.sh live
	@rm -rf demo
	tailtrim run demo --out demo

dist: $(VENV)/requirements.stamp
	packaging/prerequisites.sh dist
	packaging/dist.sh

test $(SUITES:%=test-%) test-all test-shard: test-environment
	packaging/with-tracefs.sh python tests/suites.py $(@:test-%=%)

check: test-environment
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	python packaging/lengths.py
	python packaging/sentences.py $(WORDED)
	cargo-deny --locked check licenses bans sources
	pip-licenses >/dev/null
	python packaging/advisories.py

format: test-environment
	cargo fmt --all
	ruff format .
	ruff check --fix .

bench: setup
	cargo bench --package tailtrim-tail --locked
	cargo build --release --locked --package tailtrim-tail --example synthesize
	python benchmarks/run.py
	python benchmarks/startup.py
	@if [ "$$(id -u)" = 0 ]; then \
	    python benchmarks/live.py && tailtrim selftest; \
	else \
	    echo "SKIPPED: benchmarks/live.py and tailtrim selftest: only root may load XDP programs"; \
	fi

# Some minutes: ratios beside those of the record of this processor.
bench-gate: setup
	cargo build --release --locked --package tailtrim-tail --example synthesize
	python benchmarks/gate.py

docs: test-environment
	packaging/prerequisites.sh docs
	packaging/fetch.sh docs
	python packaging/docs.py target/docs/pages
	python packaging/man.py target/docs/man
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet

# analyze computes all statistics for each input, and host asks every check: they are given a time instead.
fuzz:
	for target in pcap modified pcapng erf mscap compressed frame text reflect ping; do \
	    mkdir -p target/fuzz/$$target; \
	    (cd fuzz && cargo +nightly fuzz run -s none $$target ../target/fuzz/$$target corpus/$$target -- \
	        -runs=$(RUNS) -max_len=512) || exit 1; \
	done
	for target in trace journal archive; do \
	    mkdir -p target/fuzz/$$target; \
	    (cd fuzz && cargo +nightly fuzz run -s none $$target ../target/fuzz/$$target corpus/$$target -- \
	        -runs=$(RUNS) -max_len=4096) || exit 1; \
	done
	mkdir -p target/fuzz/analyze
	cd fuzz && cargo +nightly fuzz run -s none --no-trace-compares analyze ../target/fuzz/analyze corpus/analyze -- \
	    -max_total_time=1500 -max_len=400
	mkdir -p target/fuzz/host
	cd fuzz && cargo +nightly fuzz run -s none host ../target/fuzz/host corpus/host -- \
	    -max_total_time=1500 -max_len=6144

clean:
	cargo clean
	rm -rf $(VENV) demo dist packaging/tailtrim.data
