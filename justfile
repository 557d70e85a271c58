# The door to everything a developer does here.

# List the recipes.
default:
    @just --list

# Runs all steps of CI, or the named ones: just ci lint doc. Without PINGSIX_BIN, no step uses the real
# PingSIX; the tests and the suite print that.
ci *steps:
    .ci/run {{ steps }}

# What to run while you work, in some five minutes once built: format, the units of translation and of sinks, the
# scenarios, and the lints of the crates that differ from `base`.
quick base="main":
    #!/usr/bin/env bash
    set -euo pipefail
    cargo fmt --all --check
    cargo test --quiet -p pingsix-translate -p pingsix-sink -p pingsix-migrate -p pingsix-gatewayctl --lib --test scenarios -- --skip original::tests::random
    changed=$({ git diff --name-only "$(git merge-base HEAD {{ base }})"; git ls-files --others --exclude-standard; } |
        grep -oE '^(bin/)?pingsix-[a-z-]+/' | sort -u | sed 's|.*\(pingsix-[a-z-]*\)/$|-p \1|' || true)
    [ -z "$changed" ] || cargo clippy --quiet $changed --all-targets -- -D warnings

# All tests. Those that need PingSIX, etcd, etcdctl or the test cluster say when they did not run.
test:
    .ci/run tests

# Build the test cluster: a real API server and what it needs. Needs Go, and says so when it is missing.
cluster:
    tools/build-cluster

# Needs buildah and jq, and says so when one is missing; tools/build-images lists the options.
# The images of the programs, as OCI archives in target/images.
images:
    tools/build-images

# Builds the images in two folders, and fails unless both give the same bytes.
images-twice:
    tools/build-images-twice

# Everything of a release in target/release-dry-run, without publishing any of it; says what is missing.
release-dry-run:
    tools/release-dry-run

# Format and lints, with all features.
check:
    .ci/run format lint

# Format everything.
fmt:
    cargo fmt --all

# Write the definitions of our own kinds.
crds:
    cargo run --quiet -p pingsix-gatewayctl -- crds | tools/split-crds crds

# The crates that each crate may know, and the purity of translation.
boundaries:
    .ci/run boundaries

# Package every crate, and build the programs and a crate outside of the workspace on the packages.
outside:
    tools/outside

# The pages of `serve --view` in Chromium, with screenshots in target/view. Needs chromium, and says so when it is missing.
view:
    cargo test -p pingsix-gatewayctl --test cli browser -- --nocapture
    cargo test -p pingsix-gatewayctl --test cli view

# API documentation, without warnings.
doc:
    .ci/run doc

# The book of docs/, as target/book/index.html.
book:
    .ci/run book

# API documentation of each crate by itself, as docs.rs makes it; before a release.
docs-rs:
    tools/docs-rs

# Licences, duplicate and banned dependencies.
deny:
    tools/check-dependencies

# Interoperation with the etcd-client crate; needs protoc, and says so when it is missing.
interop:
    tools/etcd-client-interop

# The property tests at length: more than 1,000,000 requests.
properties cases="3000":
    PROPERTY_CASES={{ cases }} cargo test --release -p pingsix-translate --test properties -- --nocapture

# The sidecar at length: 1,000 connections are judged while 10,000 routes change, and 10,000,000 random bytes go both ways.
streams-load:
    STREAMS_JUDGES=1000 STREAMS_ROUTES=10000 STREAMS_BYTES=10000000 cargo test --release -p pingsix-gateway-sidecar --test streams -- --nocapture no_change connections_that_go_on random_bytes

# Hostile tenants beside a victim, in this many worlds that are translated.
adversary-worlds worlds="100000":
    ADVERSARY_WORLDS={{ worlds }} cargo test --release -p pingsix-translate --test properties adversary -- --nocapture

# Against the real PingSIX: PINGSIX_BIN=/path/to/pingsix just contract
contract:
    tools/require-pingsix
    cargo test --release --workspace --test contract -- --nocapture
    cargo test --release --workspace --lib --bins --test '[!c]*' --test cli -- --nocapture pingsix

# Publishes random data planes of one sort to the real PingSIX, such as Annotations.
accepted sort="Annotations" worlds="17000":
    tools/require-pingsix
    CONTRACT_SORT={{ sort }} CONTRACT_CASES=$(({{ worlds }} * 64)) cargo test --release -p pingsix-gateway-api --features controller --test contract accepted -- --nocapture

# Needs PINGSIX_BIN, Go and Linux, and says so when one is missing. RUN_TEST=NAME runs a single test.
# The conformance suite of Gateway API, with a controller and its data planes in the test cluster.
conformance:
    tools/conformance

# Refresh what the scenarios become (testdata/scenarios), and say which files changed; read the difference.
scenarios:
    UPDATE_SCENARIOS=1 cargo test -p pingsix-gatewayctl --test scenarios -- every_scenario_becomes --nocapture
    cargo test -p pingsix-gatewayctl --test scenarios

# Refresh what `check` says about testdata/examples; read the difference.
examples:
    UPDATE_EXAMPLES=1 cargo test -p pingsix-gatewayctl --test cli -- examples --test-threads 1

# Refresh what the migrations become (testdata/migrations); read the difference.
migrations:
    UPDATE_MIGRATIONS=1 cargo test -p pingsix-gatewayctl --test cli -- migrate

# Refresh the reference pages that are made from the definitions and the program (docs/reference).
reference:
    UPDATE_REFERENCE=1 cargo test -p pingsix-migrate -p pingsix-gatewayctl --lib --test documentation -- generated

# Benchmarks; results are recorded in docs/results.
bench:
    cargo bench -p pingsix-translate
    cargo bench -p pingsix-sink --bench embedded
    cargo bench -p pingsix-gateway-api --features controller --bench reconcile
    cargo bench -p pingsix-gateway-api --features controller --bench memory
    cargo bench -p pingsix-gatewayctl --bench migrate

# With the argument neighbours: what Gateways cost each other.
# What a change costs on a real API server; says so when that is not built. Results are recorded in docs/results.
bench-live *routes:
    cargo bench -p pingsix-gateway-api --features controller --bench live -- {{ routes }}

# Needs etcd and PINGSIX_BIN, and says so when one is missing. Recorded in docs/results.
# What PingSIX pays for each Route when it applies a change, by the shape of the Routes.
bench-apply *routes:
    cargo bench -p pingsix-gateway-api --bench apply -- {{ routes }}

# Another controller runs in turn with ours: just bench-gateways --beside FILE (benches/gateways/description.rs has the format).
# The tests of the public benchmark gateway-api-bench, until a client has its answer; needs Linux, PINGSIX_BIN and the cluster, and
# says so when one is missing. Tests can be named, such as propagation. Recorded in docs/results.
bench-gateways *arguments:
    cargo bench -p pingsix-gateway-api --features controller --bench gateways -- {{ arguments }}

# The real PingSIX reads both (PINGSIX_BIN); says what is missing. Some four minutes, recorded in docs/results.
# What delivery costs, by ratios: the embedded server beside etcd.
bench-delivery *routes:
    cargo bench -p pingsix-sink --bench delivery -- {{ routes }}

# Needs Linux with two processors, and of Debian haproxy, nginx, libnginx-mod-stream, iperf3, dnsperf, wrk and nghttp2-client; the last row
# needs PINGSIX_BIN. Says what is missing. A workload can be named, such as bulk. Recorded in docs/results.
# The sidecar's streams beside HAProxy and nginx.
bench-streams *workloads:
    cargo bench -p pingsix-gateway-sidecar --bench streams -- {{ workloads }}

# Fuzz a target for a while; needs cargo-fuzz and a nightly toolchain.
fuzz target="translate" seconds="60":
    cd "$(ls pingsix-*/fuzz/fuzz_targets/{{ target }}.rs bin/*/fuzz/fuzz_targets/{{ target }}.rs 2> /dev/null | xargs dirname)/../.." && cargo +nightly fuzz run {{ target }} -- -max_total_time={{ seconds }}

# A hundred clients of the embedded server and a hundred changes a second, for a while.
soak seconds="600":
    SOAK_SECONDS={{ seconds }} cargo test --release -p pingsix-sink --test embedded_soak -- --nocapture

# A hundred changes a second, for a while, while etcdctl watches; says nothing when that is missing.
churn seconds="60":
    CHURN_SECONDS={{ seconds }} cargo test -p pingsix-sink --test embedded etcdctl::a_watch_lives -- --nocapture

# Twice, the second time while the controller is killed again and again; says so when PINGSIX_BIN or the cluster is missing.
# Changes on a real API server while clients judge every answer of the real PingSIX.
load changes="10000":
    LOAD_CHANGES={{ changes }} cargo test --release -p pingsix-gateway-api --features controller --test cluster under_load -- --nocapture --test-threads 1

# Says so when PINGSIX_BIN or the cluster is missing.
# Hostile tenants beside a victim for a while, on a real API server and with the real PingSIX.
adversary seconds="600":
    ADVERSARY_SECONDS={{ seconds }} cargo test --release -p pingsix-gateway-api --features controller --test cluster adversary -- --nocapture --test-threads 1

# Requests without credentials, spelled in every way, for protected parts of random sites that the real PingSIX serves.
hostile requests="100000":
    tools/require-pingsix
    HOSTILE_REQUESTS={{ requests }} cargo test --release -p pingsix-gateway-api --features controller --test contract hostile -- --nocapture

# Regenerate the etcd wire types from the .proto files.
proto:
    cargo run --manifest-path pingsix-sink/proto/codegen/Cargo.toml
