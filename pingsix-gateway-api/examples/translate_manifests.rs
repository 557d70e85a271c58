//! Manifests become documents of PingSIX, without a cluster and without any feature.
//!
//! ```sh
//! cargo run -p pingsix-gateway-api --example translate_manifests
//! ```

use std::error::Error;
use std::io::Write;

use pingsix_gateway_api::{MemorySink, Objects, Options, Pipeline, Request, Sink as _};

const MANIFESTS: &str = include_str!("shop.yaml");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(MANIFESTS, &mut std::io::stdout()).await
}

pub(crate) async fn run(manifests: &str, out: &mut (dyn Write + Send)) -> Result<(), Box<dyn Error>> {
    // 1. Objects, in any order. A problem costs its document alone.
    let (objects, problems) = Objects::from_yaml(manifests);
    for problem in &problems {
        writeln!(out, "fault: {problem}")?;
    }

    // 2. The documents of each data plane: one for a Gateway with the layout `Shared`, one for a port with `PerPort`.
    //    Documents that PingSIX would refuse are held back. What is wrong with an object is a finding.
    let options = Options { controller_name: "example.com/embedded".to_owned(), ..Options::default() };
    let output = Pipeline::new(options).run(&objects);
    for finding in &output.findings {
        writeln!(out, "problem: {finding}")?;
    }

    // 3. A publication, to any sink.
    let sink = MemorySink::new();
    for (_, desired) in output.desired() {
        let published = sink.publish(desired).await?;
        writeln!(out, "{}: {}", desired.scope(), published.changed)?;
        for document in desired.documents() {
            writeln!(out, "  {} because of {}", document.key, document.owner)?;
        }
    }

    // 4. The answer of PingSIX to a request.
    for target in ["/cart/items", "/"] {
        for explanation in output.explain(&Request::get("shop.example", target).into())? {
            write!(out, "\n{explanation}")?;
        }
    }
    Ok(())
}
