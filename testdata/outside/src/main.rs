//! The parts of the library crates, in a few lines each.

mod bridge;
#[cfg(feature = "controller")]
mod controller;
#[cfg(feature = "operator")]
mod store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", bridge::keys(&serde_json::json!({}))?.join(" "));
    #[cfg(feature = "operator")]
    println!("{}", store::readers("pingsix")?.join(" "));
    #[cfg(feature = "controller")]
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(controller::serve())?;
    }
    Ok(())
}
