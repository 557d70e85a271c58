//! Writes `pingsix-sink/src/proto/*.rs` from `pingsix-sink/proto/*.proto`.
//!
//! ```text
//! cargo run --manifest-path pingsix-sink/proto/codegen/Cargo.toml            # write
//! cargo run --manifest-path pingsix-sink/proto/codegen/Cargo.toml -- --check # exit 1 if the files differ
//! ```
//!
//! protox replaces protoc, so nothing but cargo is needed.
//! The result is checked in, so a build of the crate generates no code.

use std::path::Path;
use std::process::ExitCode;
use std::{env, error, fs};

/// Messages whose fields may be private keys or passwords: `src/proto.rs` writes their `Debug` by hand.
const REDACTED: [&str; 4] = [
    ".mvccpb.KeyValue",
    ".etcdserverpb.PutRequest",
    ".etcdserverpb.Compare",
    ".etcdserverpb.AuthenticateRequest",
];

/// The packages, each of which becomes one file.
const PACKAGES: [&str; 2] = ["etcdserverpb", "mvccpb"];

fn main() -> Result<ExitCode, Box<dyn error::Error>> {
    let check = env::args().skip(1).any(|argument| argument == "--check");
    let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = protos.join("../src/proto");
    let fresh = env::temp_dir().join(format!("pingsix-sink-codegen-{}", std::process::id()));
    fs::create_dir_all(&fresh)?;

    let files = protox::compile([protos.join("rpc.proto")], [&protos])?;
    tonic_prost_build::configure()
        // A value is shared by every watcher it goes to, never copied into a Vec.
        .bytes(".")
        .skip_debug(REDACTED)
        .emit_rerun_if_changed(false)
        .out_dir(&fresh)
        .compile_fds(files)?;

    let mut differs = false;
    for package in PACKAGES {
        let name = format!("{package}.rs");
        let text = fs::read_to_string(fresh.join(&name))?;
        let target = sources.join(&name);
        if check {
            if fs::read_to_string(&target).ok().as_deref() != Some(text.as_str()) {
                eprintln!("{} is not what the .proto files generate", target.display());
                differs = true;
            }
        } else {
            fs::create_dir_all(&sources)?;
            fs::write(&target, text)?;
        }
    }
    fs::remove_dir_all(&fresh)?;
    Ok(if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
