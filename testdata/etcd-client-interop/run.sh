#!/bin/sh
# Runs the interop tests, or says that they are skipped.
set -eu
if ! command -v "${PROTOC:-protoc}" >/dev/null 2>&1; then
    echo "SKIPPED: etcd-client-interop needs protoc (Debian: protobuf-compiler)"
    exit 0
fi
exec cargo test --manifest-path "$(dirname "$0")/Cargo.toml" "$@"
