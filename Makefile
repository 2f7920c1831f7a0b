# make setup   virtual environment, native module and static agent: leaves .venv/bin/tailtrim
# make demo    a live experiment on this machine, its table and its report
# make dist    what others install, in dist/: the wheel, the static agent, its Debian package
# make test    everything that must hold: check, Rust tests, Python tests
# make check   formatting, lints, types, import layers, lengths, licences, advisories
# make bench   time the parts and whole processes beside their peers
# make docs    the documentation site, offline, in target/docs/site, and man pages in target/docs/man
# make fuzz    run every fuzz target (RUNS=10000000)
# make clean   remove what the above made

PYTHON ?= python3
RUNS ?= 10000000
VENV := .venv
VALIDATOR := target/validator
S3S := target/s3s
BIN := $(VENV)/bin
# A lock names all that is needed.
LOCKED := --quiet --disable-pip-version-check --no-deps --require-hashes
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name '*.[ch]' -o -name Cargo.toml)

# Programs of the environment first: maturin calls cargo, pip calls maturin.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.PHONY: setup demo dist fetched test none-skipped check format bench docs fuzz clean
.DELETE_ON_ERROR:

setup: $(VENV)/package.stamp

$(VENV)/prerequisites.stamp: packaging/prerequisites.sh
	packaging/prerequisites.sh build
	mkdir -p $(VENV)
	touch $@

$(VENV)/requirements.stamp: requirements.lock $(VENV)/prerequisites.stamp
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	pip install $(LOCKED) --requirement requirements.lock
	touch $@

$(VENV)/agent.stamp: $(RUST) packaging/agent.sh $(VENV)/prerequisites.stamp
	packaging/agent.sh
	touch $@

$(VENV)/package.stamp: $(RUST) pyproject.toml $(VENV)/requirements.stamp $(VENV)/agent.stamp
	pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Live, as root or in a user namespace: a minute. An earlier one makes room.
demo: setup
	packaging/prerequisites.sh live
	@rm -rf demo
	tailtrim run demo --out demo

dist: setup
	packaging/prerequisites.sh dist
	packaging/dist.sh

# Spark and Sail, which only tests need. Without them those tests are skipped loudly.
$(VENV)/spark.stamp: requirements-spark.lock $(VENV)/package.stamp
	-pip install $(LOCKED) --requirement requirements-spark.lock && touch $@

# What validates releases: only a test calls it. Without it that test is skipped loudly.
$(VALIDATOR)/validator.stamp: requirements-validator.lock
	-test -x $(VALIDATOR)/bin/python || $(PYTHON) -m venv $(VALIDATOR)
	-$(VALIDATOR)/bin/pip install $(LOCKED) --requirement $< && touch $@

# An S3 server, which only a test of captures in an object store needs. Without it that test is skipped loudly.
$(S3S)/s3s.stamp:
	-CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --debug --locked --root $(S3S) --features binary s3s-fs@0.14.1 && touch $@

# What tests need of other projects.
fetched: $(VENV)/spark.stamp $(VENV)/docs.stamp $(VALIDATOR)/validator.stamp $(S3S)/s3s.stamp
	packaging/kernels.sh
	packaging/roots.sh
	packaging/stamp-suite.sh

# What is skipped before pytest runs adds a line each; pytest shows them at its end, with its own. Fetching waits for the
# network and the disk most of the time: it runs beside the Rust tests. Simulations, which `cargo test` ignores, run with them:
# cargo would compile for a selection of crates anew. LEFT_OUT goes on with what pytest selects of the laboratory.
test: export TAILTRIM_SKIPPED := $(CURDIR)/target/skipped
test: none-skipped check
	packaging/prerequisites.sh test
	$(MAKE) fetched >target/fetched.log 2>&1 & fetched=$$!; passed=0; \
	    packaging/with-tracefs.sh packaging/tests.sh cargo --workspace --exclude tailtrim-python -- --include-ignored || \
	    passed=$$?; \
	    wait $$fetched || passed=$$?; cat target/fetched.log; \
	    [ $$passed = 0 ] || { sed 's/^/SKIPPED /' $(TAILTRIM_SKIPPED); exit $$passed; }
	packaging/dist.sh
	packaging/with-tracefs.sh packaging/tests.sh pytest --ignore tests/lab --numprocesses 2 --dist loadfile
	packaging/with-tracefs.sh packaging/tests.sh pytest tests/lab -m 'not alone $(LEFT_OUT)' --numprocesses 3 --dist loadgroup --no-loadscope-reorder
	packaging/with-tracefs.sh packaging/tests.sh pytest tests/lab -m alone

none-skipped:
	@mkdir -p target && : >target/skipped

check: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	python packaging/lengths.py
	cargo-deny --locked check licenses bans sources
	pip-licenses >/dev/null
	python packaging/advisories.py

format:
	cargo fmt --all
	ruff format .
	ruff check --fix .

bench: setup
	cargo bench --package tailtrim-tail --locked
	cargo build --release --locked --package tailtrim-agent
	cargo build --release --locked --package tailtrim-tail --example synthesize
	python benchmarks/run.py
	python benchmarks/startup.py
	@if [ "$$(id -u)" = 0 ]; then \
	    python benchmarks/live.py && tailtrim selftest; \
	else \
	    echo "SKIPPED: benchmarks/live.py and tailtrim selftest: only root may load XDP programs"; \
	fi

# What builds the site. Without it the test of the site is skipped loudly.
$(VENV)/docs.stamp: requirements-docs.lock $(VENV)/package.stamp
	-pip install $(LOCKED) --requirement requirements-docs.lock && touch $@

docs: $(VENV)/docs.stamp
	packaging/prerequisites.sh docs
	python packaging/docs.py target/docs/pages
	python packaging/man.py target/docs/man
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet

# analyze computes all statistics for each input, and host asks every check: they are given a time instead.
fuzz:
	for target in pcap pcapng mscap compressed frame text reflect ping; do \
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
