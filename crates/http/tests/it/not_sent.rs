//! `NotSent` is never wrong on HTTP/2, by frames: a peer stops reading while requests end in every way, then reads
//! everything. No request that was called not sent may be among what it received.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::Request;
use perihelion_http::trace::{Protocol, RequestTrace, Sent, Step, observe};
use perihelion_http::{Client, Error, RequestBody};
use tokio::task::JoinSet;

use crate::certificates::CertificateAuthority;
use crate::client::builder;
use crate::server::TEST_TIMEOUT;
use crate::stalling_peer::{Mode, Peer, STREAMS_MAX, requests_in};

/// Requests of one round, and of all rounds of a test: 50 rounds without TLS and 50 with it make 10,000.
const REQUESTS_PER_ROUND: usize = 100;
const ROUNDS: usize = 50;
/// More than the buffers of a loopback connection take: what is sent after it waits until the peer reads.
const FILLING_BODY: usize = 8 * 1024 * 1024;
/// How the peer ends its stall; the rounds take turns.
const ENDINGS: [Mode; 5] = [Mode::Serve, Mode::Refuse, Mode::GoAway, Mode::Close, Mode::Reset];

/// How a request ends, if the peer does not end it.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Deadline(Duration),
    /// Its future is dropped after so many polls.
    Dropped(usize),
    /// The test waits for it.
    Awaited,
}

/// What is known of a request after it has ended.
#[derive(Debug)]
struct Outcome {
    path: String,
    trace: RequestTrace,
}

#[expect(clippy::disallowed_methods, reason = "a deadline is a time of the clock that the client reads")]
fn now() -> Instant {
    Instant::now()
}

async fn send(client: Client, url: String, body: usize) -> Result<(), Error> {
    let request = Request::post(url).body(RequestBody::from(vec![b'x'; body])).expect("it is valid");
    client.send(request).await?.into_body().bytes(1024).await?;
    Ok(())
}

/// Runs one request until its ending.
async fn run(client: Client, base: String, path: String, body: usize, ending: Ending) -> Outcome {
    let sending = observe(send(client, format!("{base}{path}"), body));
    let trace = match ending {
        Ending::Awaited => sending.await.0,
        Ending::Deadline(after) => sending.with_deadline(now() + after).await.0,
        Ending::Dropped(polls) => {
            let (mut sending, mut left) = (pin!(sending), polls);
            poll_fn(|cx| {
                if left == 0 {
                    return Poll::Ready(sending.current_trace());
                }
                left -= 1;
                match sending.as_mut().poll(cx) {
                    Poll::Ready((trace, _)) => Poll::Ready(trace),
                    Poll::Pending if left == 0 => Poll::Ready(sending.current_trace()),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        }
    };
    Outcome { path, trace }
}

/// The outcomes of one round, each with whether the HEADERS of its request arrived at the peer.
async fn round(
    authority: Option<&CertificateAuthority>,
    number: usize,
    random: &mut fastrand::Rng,
) -> Vec<(Outcome, bool)> {
    let peer = Peer::start(authority.map(|authority| authority.server("127.0.0.1", &["h2"]))).await;
    let client = match authority {
        Some(authority) => builder().trust([authority.root()]),
        None => builder(),
    };
    let client = client.protocol(Protocol::Http2).build().expect("it is valid");
    let scheme = if authority.is_some() { "https" } else { "http" };
    let base = format!("{scheme}://{}", peer.address);
    // Its response has no end, so its body stays open until the end of the round.
    let first = Request::post(format!("{base}/first")).body(()).expect("it is valid");
    let first = client.send(first).await.expect("the peer serves");

    peer.set_mode(Mode::Stall);
    let mut requests = JoinSet::new();
    for index in 0..REQUESTS_PER_ROUND {
        let fills = index == 0 && !number.is_multiple_of(4);
        let body = if fills { FILLING_BODY } else { random.usize(0..100) };
        let ending = match random.u8(0..10) {
            _ if fills => Ending::Awaited,
            0..7 => Ending::Deadline(Duration::from_micros(random.u64(0..60_000))),
            7..9 => Ending::Dropped(random.usize(0..4)),
            _ => Ending::Awaited,
        };
        requests.spawn(run(client.clone(), base.clone(), format!("/{index}"), body, ending));
        if fills {
            // Mostly enough to fill the buffers. If not, the others are sent beside it.
            tokio::time::sleep(Duration::from_millis(20)).await;
        } else if random.u8(0..4) == 0 {
            tokio::time::sleep(Duration::from_micros(random.u64(0..2_000))).await;
        }
    }
    let mut outcomes = Vec::new();
    // Some end during the stall; the ending of the stall ends the others, or lets them complete.
    for _ in 0..REQUESTS_PER_ROUND / 2 {
        outcomes.extend(requests.join_next().await.expect("not all have ended"));
    }
    peer.set_mode(ENDINGS[number % ENDINGS.len()]);
    if matches!(ENDINGS[number % ENDINGS.len()], Mode::Refuse | Mode::Close | Mode::Reset) {
        // Requests that wait for a stream or a new connection must find a peer that serves.
        while requests.len() > REQUESTS_PER_ROUND / 4 {
            outcomes.extend(requests.join_next().await.expect("not all have ended"));
        }
        peer.set_mode(Mode::Serve);
    }
    while let Some(outcome) = requests.join_next().await {
        outcomes.push(outcome.expect("no request panics"));
    }
    // One more request, so that what is queued before it on the same connection is written.
    let last =
        run(client.clone(), base, "/last".to_owned(), 0, Ending::Deadline(Duration::from_secs(5))).await;
    drop((first, client));
    outcomes.push(last);

    let mut arrived: HashMap<String, bool> = HashMap::new();
    for record in peer.records().await {
        for (stream, path) in requests_in(&record.bytes).await {
            *arrived.entry(path).or_default() |= record.executed.contains(&stream);
        }
    }
    let mut checked = Vec::new();
    for outcome in outcomes {
        let has_arrived = arrived.contains_key(&outcome.path);
        let executed = arrived.get(&outcome.path).is_some_and(|executed| *executed);
        let what = format!("round {number}, {:?}: {outcome:?}", ENDINGS[number % ENDINGS.len()]);
        assert!(
            !(outcome.trace.sent == Sent::NotSent && has_arrived),
            "called not sent, but arrived: {what}"
        );
        assert!(!(outcome.trace.refused && executed), "called refused, but executed: {what}");
        checked.push((outcome, has_arrived));
    }
    checked
}

async fn check(tls: bool) {
    let authority = tls.then(CertificateAuthority::new);
    let mut random = fastrand::Rng::with_seed(if tls { 2 } else { 1 });
    let mut outcomes = Vec::new();
    for number in 0..ROUNDS {
        let round = tokio::time::timeout(TEST_TIMEOUT, round(authority.as_ref(), number, &mut random));
        outcomes.extend(round.await.unwrap_or_else(|_| panic!("round {number} never ended")));
    }
    let count = |condition: &dyn Fn(&RequestTrace, bool) -> bool| {
        outcomes.iter().filter(|(outcome, arrived)| condition(&outcome.trace, *arrived)).count()
    };
    let not_sent = |trace: &RequestTrace| trace.sent == Sent::NotSent;
    let complete = count(&|trace, _| trace.first_byte.is_some());
    let waiting = count(&|trace, _| not_sent(trace) && trace.failed_step == Some(Step::Wait));
    let on_a_connection = count(&|trace, _| not_sent(trace) && trace.failed_step == Some(Step::Send));
    let refused = count(&|trace, _| trace.refused);
    let unknown_and_arrived = count(&|trace, arrived| trace.sent == Sent::MaybeSent && arrived);
    let unknown_and_lost = count(&|trace, arrived| trace.sent == Sent::MaybeSent && !arrived);
    let counts = format!(
        "{} requests: {complete} complete, {waiting} not sent while they waited for a stream, {on_a_connection} not \
         sent on a lost connection, {refused} refused, {unknown_and_arrived} maybe sent that arrived, \
         {unknown_and_lost} maybe sent that did not",
        outcomes.len()
    );
    // Otherwise the test shows nothing: each kind has to occur, those that may be claimed and those that may not.
    assert!(outcomes.len() >= 5_000, "{counts}");
    assert!(waiting >= 50 && on_a_connection >= 5 && refused >= 50, "{counts}");
    assert!(complete >= 50 && unknown_and_arrived >= 20, "{counts}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_that_was_called_not_sent_arrives_at_a_stalling_peer() {
    check(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_that_was_called_not_sent_arrives_at_a_stalling_peer_with_tls() {
    check(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_requests_keep_their_streams_while_the_peer_reads_nothing() {
    let peer = Peer::start(None).await;
    let client = builder().protocol(Protocol::Http2).build().expect("it is valid");
    let base = format!("http://{}", peer.address);
    let first = Request::post(format!("{base}/first")).body(()).expect("it is valid");
    let _first = client.send(first).await.expect("the peer serves");
    peer.set_mode(Mode::Stall);
    let filling = Ending::Deadline(Duration::from_secs(30));
    let filling = tokio::spawn(run(client.clone(), base.clone(), "/fill".to_owned(), FILLING_BODY, filling));
    // As soon as the buffers are full, `STREAMS_MAX` of these are all that h2 gets. The next one waits here.
    for number in 0..10 * usize::from(STREAMS_MAX) {
        // Long enough for a byte of the peer, without which the client would give up the connection.
        let ending = Ending::Deadline(Duration::from_millis(100));
        let outcome = run(client.clone(), base.clone(), format!("/{number}"), 0, ending).await;
        if outcome.trace.failed_step == Some(Step::Wait) {
            assert_eq!(outcome.trace.sent, Sent::NotSent);
            peer.set_mode(Mode::Serve);
            let filled = filling.await.expect("it does not panic");
            assert_eq!(filled.trace.failed_step, None, "the connection continues");
            let next = run(client, base, "/next".to_owned(), 0, Ending::Awaited).await;
            assert_eq!(next.trace.failed_step, None, "streams are free again");
            return;
        }
    }
    panic!("the queue of h2 has no limit");
}
