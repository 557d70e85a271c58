use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::*;

/// Two ends of a connection over loopback.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
    (near.unwrap(), far.unwrap().0)
}

/// The byte at a place of the stream of a side: no two near places have the same neighbours.
fn byte(side: u8, place: usize) -> u8 {
    let mixed = u64::try_from(place).unwrap().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed.to_be_bytes()[1] ^ side
}

/// The steps of one side, which half-closes after the last one.
#[derive(Clone, Debug)]
enum Step {
    Send(usize),
    Pause(u64),
    Reset,
}

/// The steps of sending, and how receiving goes: bytes at a time, with a stall after so many.
#[derive(Clone, Debug)]
struct Side {
    steps: Vec<Step>,
    read: usize,
    stall_after: usize,
}

impl Side {
    fn sent(&self) -> usize {
        let sent = self.steps.iter().map(|step| match step {
            Step::Send(bytes) => *bytes,
            Step::Pause(_) | Step::Reset => 0,
        });
        sent.sum()
    }

    fn resets(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Reset))
    }
}

/// Plays a side, checks each byte of the other one, and returns how many came and whether they ended in order.
async fn play(mut stream: TcpStream, side: Side, name: u8) -> (usize, bool) {
    let reset = side.resets();
    let (mut input, mut output) = stream.split();
    let send = async {
        let mut place = 0;
        for step in &side.steps {
            match step {
                Step::Send(bytes) => {
                    let content: Vec<u8> = (place..place + bytes).map(|place| byte(name, place)).collect();
                    place += bytes;
                    if output.write_all(&content).await.is_err() {
                        return false;
                    }
                }
                Step::Pause(millis) => sleep(Duration::from_millis(*millis)).await,
                Step::Reset => return true,
            }
        }
        // After a reset of the other side this fails.
        let _ = output.shutdown().await;
        false
    };
    let receive = async {
        let (mut place, mut stalled) = (0, false);
        let mut buffer = vec![0; side.read];
        loop {
            match input.read(&mut buffer).await {
                Ok(0) => return (place, true),
                Ok(bytes) => {
                    for (index, received) in buffer[..bytes].iter().enumerate() {
                        assert_eq!(
                            *received,
                            byte(1 - name, place + index),
                            "byte {} of {}",
                            place + index,
                            1 - name
                        );
                    }
                    place += bytes;
                }
                Err(_) => return (place, false),
            }
            if !stalled && place >= side.stall_after {
                stalled = true;
                sleep(Duration::from_millis(20)).await;
            }
        }
    };
    let received = if reset {
        // The reset ends receiving too.
        tokio::pin!(receive);
        tokio::select! {
            _ = send => (0, false),
            received = &mut receive => received,
        }
    } else {
        tokio::join!(send, receive).1
    };
    if reset {
        let _ = stream.set_zero_linger();
    }
    received
}

fn run(runtime: &Runtime, client: &Side, backend: &Side, pipes: usize) {
    let (client, backend) = (client.clone(), backend.clone());
    runtime.block_on(async move {
        let (client_end, one) = pair().await;
        let (other, backend_end) = pair().await;
        let (sent, answered) = (client.sent(), backend.sent());
        let reset = client.resets() || backend.resets();
        let relayed = tokio::spawn(async move {
            let counts = (Counter::default(), Counter::default());
            let pools = Pools::new(pipes);
            let result = relay(&one, &other, &pools, (&counts.0, &counts.1)).await;
            if result.is_err() {
                let _ = one.set_zero_linger();
                let _ = other.set_zero_linger();
            }
            (result.is_ok(), counts.0.get(), counts.1.get(), pools)
        });
        let played = async {
            tokio::join!(
                tokio::spawn(play(client_end, client, 0)),
                tokio::spawn(play(backend_end, backend, 1))
            )
        };
        let (at_client, at_backend) = timeout(Duration::from_secs(30), played).await.expect("no end");
        let (at_client, at_backend) = (at_client.unwrap(), at_backend.unwrap());
        let (ordered, there, back, pools) =
            timeout(Duration::from_secs(5), relayed).await.expect("no end").unwrap();
        if reset {
            assert!(at_client.0 <= answered && at_backend.0 <= sent);
        } else {
            assert_eq!((at_client, at_backend, ordered), ((answered, true), (sent, true), true));
            assert_eq!((there, back), (u64::try_from(sent).unwrap(), u64::try_from(answered).unwrap()));
        }
        pools.pipes.assert_all_empty();
    });
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..2_000_usize).prop_map(Step::Send),
        4 => (1..400_000_usize).prop_map(Step::Send),
        1 => (0..15_u64).prop_map(Step::Pause),
    ]
}

fn side() -> impl Strategy<Value = Side> {
    let read = prop::sample::select(vec![1_000_usize, 4_096, 65_536, 300_000]);
    (
        prop::collection::vec(step(), 0..6),
        any::<prop::sample::Index>(),
        prop::bool::weighted(0.15),
        read,
        0..500_000_usize,
    )
        .prop_map(|(mut steps, place, reset, read, stall_after)| {
            if reset {
                steps.truncate(place.index(steps.len() + 1));
                steps.push(Step::Reset);
            }
            Side { steps, read, stall_after }
        })
}

#[test]
fn every_byte_of_random_scripts_arrives() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(client in side(), backend in side(), pipes in 0..3_usize)| {
        run(&runtime, &client, &backend, pipes);
    });
}

#[test]
fn a_direction_goes_on_after_the_end_of_the_other() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for pipes in [0, 2] {
        let asks = Side { steps: vec![Step::Send(10)], read: 65_536, stall_after: 0 };
        let answers =
            Side { steps: vec![Step::Pause(30), Step::Send(3_000_000)], read: 65_536, stall_after: 0 };
        run(&runtime, &asks, &answers, pipes);
        run(&runtime, &answers, &asks, pipes);
    }
}

#[test]
fn bulk_passes_through_pipes_and_idle_connections_hold_none() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut client, one) = pair().await;
        let (other, mut backend) = pair().await;
        let pools = Pools::new(4);
        let counts = (Counter::<u64>::default(), Counter::<u64>::default());
        let script = async {
            let content: Vec<u8> = (0..2_000_000).map(|place| byte(0, place)).collect();
            let send = client.write_all(&content);
            let mut received = vec![0; content.len()];
            let (written, read) = tokio::join!(send, backend.read_exact(&mut received));
            written.unwrap();
            read.unwrap();
            assert!(received == content);
            tokio::task::yield_now().await;
            assert_eq!(pools.buffers.lent(), 0);
            if cfg!(target_os = "linux") {
                assert!(pools.pipes.made() >= 1, "nothing was spliced");
            }
            pools.pipes.assert_all_empty();
        };
        tokio::select! {
            biased;
            result = relay(&one, &other, &pools, (&counts.0, &counts.1)) => panic!("{result:?}"),
            () = script => {}
        }
        assert_eq!(counts.0.get(), 2_000_000);
    });
}
