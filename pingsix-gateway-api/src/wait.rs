//! Waiting for a value that changes.

use tokio::sync::watch;

/// Waits for a change; forever without a receiver.
pub(crate) async fn changed<T>(receiver: Option<&mut watch::Receiver<T>>) {
    if let Some(receiver) = receiver
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
