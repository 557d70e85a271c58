//! Manifests become what PingSIX shall hold: the bridge alone, without a cluster and without any feature.
//!
//! ```sh
//! cargo run -p pingsix-gateway-api --example translate_manifests
//! ```
//!
//! Three steps: collect objects, translate a Gateway with what belongs to it, publish what comes of it to a sink. Then a
//! question: what would PingSIX do with this request?

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use pingsix_gateway_api::bridge;
use pingsix_gateway_api::explain::{Plane, explain};
use pingsix_sink::{MemorySink, Sink as _};
use pingsix_translate::pingsix::Request;
use pingsix_translate::snapshot::{EndpointSlice, Gateway, GatewayClass, HttpRoute, Service};
use pingsix_translate::{Object, ObjectName, Objects, Options, translate};
use serde::de::DeserializeOwned;
use serde_json::Value;

const MANIFESTS: &str = include_str!("shop.yaml");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(MANIFESTS, &mut std::io::stdout()).await
}

pub(crate) async fn run(manifests: &str, out: &mut (dyn Write + Send)) -> Result<(), Box<dyn Error>> {
    // 1. Objects, wherever they are from. The order does not matter, nor does what nobody refers to.
    let mut objects = Objects::default();
    for manifest in serde_saphyr::from_multiple::<Value>(manifests)? {
        objects.insert(decoded(manifest)?);
    }

    // 2. A snapshot is one Gateway and all that it may see. Translation is a function of it, which never fails: what is
    //    wrong with an object is told in the verdicts.
    let options = Options::default();
    let gateway = ObjectName::new("shop", "web");
    let snapshot = objects.snapshot(&gateway).ok_or("there is no such Gateway")?;
    let translation = translate(&snapshot, &options);
    for problem in &translation.verdicts.problems {
        writeln!(out, "problem: {problem}")?;
    }

    // 3. Each data plane (one with the layout `Shared`, one per port with `PerPort`) goes through the bridge, which lets
    //    nothing pass that PingSIX would refuse, and from there to any sink.
    let sink = MemorySink::new();
    for (key, plane) in &translation.data_planes {
        let bridged = bridge(key, plane, &options)?;
        let published = sink.publish(&bridged.desired).await?;
        writeln!(out, "{}: {}", bridged.desired.scope(), published.changed)?;
        for document in bridged.desired.documents() {
            writeln!(out, "  {} because of {}", document.key, document.owner)?;
        }

        let plane = Plane {
            key,
            config: &bridged.config,
            provenance: &plane.provenance,
            verdicts: &translation.verdicts,
        };
        for target in ["/cart/items", "/"] {
            let explanation = explain(&plane, &Request::get("shop.example", target), Some(80))?;
            write!(out, "\n{explanation}")?;
        }
    }
    Ok(())
}

/// An object of one of the kinds that this example has.
fn decoded(manifest: Value) -> Result<Object, Box<dyn Error>> {
    fn read<K: DeserializeOwned>(manifest: Value) -> Result<Arc<K>, serde_json::Error> {
        serde_json::from_value(manifest).map(Arc::new)
    }
    Ok(match manifest.get("kind").and_then(Value::as_str) {
        Some("GatewayClass") => Object::GatewayClass(read::<GatewayClass>(manifest)?),
        Some("Gateway") => Object::Gateway(read::<Gateway>(manifest)?),
        Some("HTTPRoute") => Object::HttpRoute(read::<HttpRoute>(manifest)?),
        Some("Service") => Object::Service(read::<Service>(manifest)?),
        Some("EndpointSlice") => Object::EndpointSlice(read::<EndpointSlice>(manifest)?),
        kind => return Err(format!("this example does not read {}", kind.unwrap_or("that")).into()),
    })
}
