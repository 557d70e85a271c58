//! Uses of the library crates by another program, in a few lines each.

mod bridge;
#[cfg(feature = "controller")]
mod controller;
#[cfg(feature = "controller")]
mod store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", bridge::keys(&serde_json::json!({}))?.join(" "));
    #[cfg(feature = "controller")]
    {
        println!("{}", store::readers("pingsix")?.join(" "));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(controller::serve())?;
    }
    Ok(())
}
