//! Manifests become documents, and the answer to a request is explained.

use pingsix_gateway_api::{Objects, Options, Pipeline, Request};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (objects, problems) = Objects::from_yaml(&std::io::read_to_string(std::io::stdin())?);
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    let output = Pipeline::new(Options::default()).run(&objects);
    output.findings.iter().for_each(|finding| eprintln!("{finding}"));
    for (data_plane, desired) in output.desired() {
        println!("{data_plane}: {} documents below {}", desired.documents().len(), desired.scope());
        for document in desired.documents() {
            println!("  {} {}", document.key, String::from_utf8_lossy(&document.value));
        }
    }
    for explanation in output.explain(&Request::get("shop.example.com", "/cart").into())? {
        println!("{explanation}");
    }
    Ok(())
}
