//! The fuzz targets with random bytes, and with bytes that are nearly right.

mod input;
mod target;

use self::target::{Target, exercise};
use crate::support::client_hello;

/// Random bytes, most of them few.
fn random(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = if random.u8(..8) == 0 { random.usize(..2_000) } else { random.usize(..60) };
    (0..length).map(|_| random.u8(..)).collect()
}

#[test]
fn any_bytes_of_clients_and_documents_harm_no_other_client() {
    let mut rng = fastrand::Rng::with_seed(1);
    for round in 0..300 {
        let bytes = random(&mut rng);
        exercise(&bytes, Target::documents);
        exercise(&bytes[..bytes.len().min(8)], |target, bytes| target.duplex(bytes));
        let mut hello = [vec![rng.u8(..), rng.u8(..), 0, 255], client_hello(Some("a.test"))].concat();
        // From one that is right to one with three other bytes.
        for _ in 0..round % 4 {
            let place = rng.usize(4..hello.len());
            hello[place] = rng.u8(..);
        }
        exercise(&hello, |target, bytes| target.hello(bytes));
        exercise(&bytes, |target, bytes| target.hello(bytes));
    }
}
