//! The fuzz targets with random bytes, and with bytes that are nearly right.

mod input;
mod target;

use self::target::Target;
use crate::support::client_hello;

/// Random bytes, most of them few.
fn random(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = if random.u8(..8) == 0 { random.usize(..2_000) } else { random.usize(..60) };
    (0..length).map(|_| random.u8(..)).collect()
}

#[test]
fn any_bytes_of_clients_and_documents_harm_nobody() {
    let mut target = Target::start();
    let mut rng = fastrand::Rng::with_seed(1);
    let none = Vec::<String>::new();
    for round in 0..300 {
        let bytes = random(&mut rng);
        assert_eq!(target.documents(&bytes), none, "{round}: {bytes:?}");
        assert_eq!(target.duplex(&bytes[..bytes.len().min(8)]), none, "{round}: {bytes:?}");
        let mut hello = [vec![rng.u8(..), rng.u8(..), 0, 255], client_hello(Some("a.test"))].concat();
        // From one that is right to one with three other bytes.
        for _ in 0..round % 4 {
            let place = rng.usize(4..hello.len());
            hello[place] = rng.u8(..);
        }
        assert_eq!(target.hello(&hello), none, "{round}: {hello:?}");
        assert_eq!(target.hello(&bytes), none, "{round}: {bytes:?}");
    }
}
