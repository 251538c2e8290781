//! A closed loop of requests over keep-alive connections, on one thread.
//!
//! In: a [`Script`] that writes requests and judges answers, a number of connections, and when to stop.
//! Out: an [`Outcome`] with operations, time, errors and the processor time of both sides. The loop makes
//! one `write` and one `read` per request and shares one `epoll_wait` among all ready connections:
//! generator and server share the machine, so what one takes, the other lacks. Which requests there are
//! is left to the scripts.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::clock;
use crate::process::Process;
use crate::response::{self, Parsed};

/// What to send and what to accept. An operation is one or more requests, one after the other.
pub(crate) trait Script {
    /// The number of the next operation; `None` when there are no more.
    fn begin(&mut self) -> Option<u64>;
    /// How many requests make one operation.
    fn requests_per_operation(&self) -> usize;
    /// Writes request `step` of `operation` into an empty buffer.
    fn write(&mut self, operation: u64, step: usize, request: &mut Vec<u8>);
    /// Whether an answer is the one wanted. Called for every answer, so it looks at little.
    fn accepts(&self, status: u16, body: &[u8]) -> bool;
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// Counts for `window` after `warm_up`; longer, up to eight times, while fewer answers than
    /// connections have come.
    After { warm_up: Duration, window: Duration },
    /// When the script has no more operations.
    WithTheScript,
}

/// What a run measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Operations, counted by their requests: half of the requests is half of an operation.
    pub(crate) operations: f64,
    /// Answers of any kind.
    pub(crate) answers: u64,
    pub(crate) elapsed: Duration,
    pub(crate) errors: u64,
    /// The first answer that was not the one wanted, for the report.
    pub(crate) first_error: Option<String>,
    pub(crate) server_processor: Duration,
    pub(crate) generator_processor: Duration,
}

impl Outcome {
    /// Operations per second.
    pub(crate) fn rate(&self) -> f64 {
        self.operations / self.elapsed.as_secs_f64()
    }

    /// The server's processor time per operation, in microseconds.
    pub(crate) fn server_micros(&self) -> f64 {
        self.server_processor.as_secs_f64() * 1e6 / self.operations
    }

    /// The generator's processor time per operation, in microseconds.
    pub(crate) fn generator_micros(&self) -> f64 {
        self.generator_processor.as_secs_f64() * 1e6 / self.operations
    }
}

/// The server under load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
}

/// A drain longer than this means that the server no longer answers.
const DRAIN_MAX: Duration = Duration::from_secs(60);

/// Runs `script` on `connections` connections until `stop`, then waits for what is in flight.
pub(crate) fn run(
    target: Target,
    connections: usize,
    stop: Stop,
    script: &mut dyn Script,
) -> Result<Outcome, String> {
    let mut lines =
        Lines::open(target.address, connections).map_err(|error| format!("connecting: {error}"))?;
    for line in &mut lines.all {
        line.begin(script).map_err(|error| format!("sending: {error}"))?;
    }
    let mut outcome = Outcome::default();
    let start = match stop {
        Stop::After { warm_up, .. } => {
            lines.until(script, clock::now() + warm_up, &mut Outcome::default())?;
            Sample::take(target.process)?
        }
        Stop::WithTheScript => Sample::take(target.process)?,
    };
    match stop {
        Stop::After { window, .. } => {
            lines.until(script, start.at + window, &mut outcome)?;
            let enough = connections as u64;
            while outcome.answers < enough && clock::now() < start.at + 8 * window {
                lines.until(script, clock::now() + window / 4, &mut outcome)?;
            }
            start.finish(target.process, &mut outcome)?;
            lines.drain(script, &mut Outcome::default())?;
        }
        Stop::WithTheScript => {
            while lines.busy() && outcome.errors == 0 {
                let before = outcome.answers;
                lines.until(script, clock::now() + DRAIN_MAX, &mut outcome)?;
                if lines.busy() && outcome.answers == before {
                    return Err(format!("no answer within {DRAIN_MAX:?}"));
                }
            }
            lines.drain(script, &mut outcome)?;
            start.finish(target.process, &mut outcome)?;
        }
    }
    Ok(outcome)
}

/// Time and processor time at one moment.
struct Sample {
    at: Instant,
    server: Duration,
    generator: Duration,
}

impl Sample {
    fn take(server: Process) -> Result<Sample, String> {
        let (server, generator) = (server.processor_time()?, Process::own().processor_time()?);
        Ok(Sample { at: clock::now(), server, generator })
    }

    fn finish(&self, server: Process, outcome: &mut Outcome) -> Result<(), String> {
        let end = Sample::take(server)?;
        outcome.elapsed = end.at - self.at;
        outcome.server_processor = end.server.saturating_sub(self.server);
        outcome.generator_processor = end.generator.saturating_sub(self.generator);
        Ok(())
    }
}

/// All connections of a run and the poll they are registered with.
struct Lines {
    poll: Poll,
    events: Events,
    all: Vec<Line>,
    draining: bool,
}

impl Lines {
    fn open(address: SocketAddr, connections: usize) -> io::Result<Lines> {
        let poll = Poll::new()?;
        let mut all = Vec::with_capacity(connections);
        for index in 0..connections {
            let stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
            all.push(Line::new(stream));
        }
        Ok(Lines { poll, events: Events::with_capacity(connections.max(8)), all, draining: false })
    }

    fn busy(&self) -> bool {
        self.all.iter().any(Line::in_flight)
    }

    /// Moves all connections forward until `deadline`, or until none has anything to do.
    fn until(
        &mut self,
        script: &mut dyn Script,
        deadline: Instant,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        loop {
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() || !self.busy() {
                return Ok(());
            }
            match self.poll.poll(&mut self.events, Some(left)) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("polling: {error}")),
            }
            for event in &self.events {
                let line = &mut self.all[event.token().0];
                line.advance(script, self.draining, outcome)?;
            }
        }
    }

    /// Lets what is in flight end and starts nothing new.
    fn drain(&mut self, script: &mut dyn Script, outcome: &mut Outcome) -> Result<(), String> {
        self.draining = true;
        self.until(script, clock::now() + DRAIN_MAX, outcome)?;
        if self.busy() { Err(format!("no answer within {DRAIN_MAX:?}")) } else { Ok(()) }
    }
}

/// One connection: at most one request is in flight on it.
struct Line {
    stream: TcpStream,
    request: Vec<u8>,
    sent: usize,
    answer: Vec<u8>,
    filled: usize,
    operation: Option<u64>,
    step: usize,
}

const ANSWER_BYTES_START: usize = 64 * 1024;

impl Line {
    fn new(stream: TcpStream) -> Line {
        let answer = vec![0; ANSWER_BYTES_START];
        Line { stream, request: Vec::new(), sent: 0, answer, filled: 0, operation: None, step: 0 }
    }

    fn in_flight(&self) -> bool {
        self.operation.is_some()
    }

    /// Starts the next operation, if the script has one.
    fn begin(&mut self, script: &mut dyn Script) -> io::Result<()> {
        self.operation = script.begin();
        self.step = 0;
        self.request_step(script)
    }

    fn request_step(&mut self, script: &mut dyn Script) -> io::Result<()> {
        if let Some(operation) = self.operation {
            self.request.clear();
            self.sent = 0;
            script.write(operation, self.step, &mut self.request);
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends and reads as far as the socket allows; an answer that is complete leads to the next request.
    fn advance(
        &mut self,
        script: &mut dyn Script,
        draining: bool,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        if !self.in_flight() {
            return Ok(());
        }
        self.send().map_err(|error| format!("sending: {error}"))?;
        loop {
            if self.filled == self.answer.len() {
                self.answer.resize(self.answer.len() * 2, 0);
            }
            let room = self.answer.len() - self.filled;
            let count = match self.stream.read(&mut self.answer[self.filled..]) {
                Ok(0) => return Err("the server closed a connection in use".to_owned()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("reading: {error}")),
            };
            self.filled += count;
            match response::parse(&self.answer[..self.filled]) {
                Err(malformed) => return Err(format!("an answer that is not understood: {}", malformed.0)),
                Ok(Parsed::Complete { status, head, total }) => {
                    return self.finish_step(script, draining, (status, head, total), outcome);
                }
                // A read that did not fill its buffer has emptied the socket: the next event brings more.
                Ok(Parsed::NeedMore) if count < room => return Ok(()),
                Ok(Parsed::NeedMore) => {}
            }
        }
    }

    fn finish_step(
        &mut self,
        script: &mut dyn Script,
        draining: bool,
        (status, head, total): (u16, usize, usize),
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        if total != self.filled {
            return Err("more bytes than one answer has".to_owned());
        }
        let body = &self.answer[head..total];
        if !script.accepts(status, body) {
            outcome.errors += 1;
            outcome.first_error.get_or_insert_with(|| excerpt(status, body));
        }
        self.filled = 0;
        self.step += 1;
        let steps = script.requests_per_operation();
        outcome.answers += 1;
        outcome.operations += 1.0 / steps as f64;
        let sending = if self.step < steps {
            self.request_step(script)
        } else {
            if draining {
                self.operation = None;
                return Ok(());
            }
            self.begin(script)
        };
        sending.map_err(|error| format!("sending: {error}"))
    }
}

/// The start of an answer, for a report.
pub(crate) fn excerpt(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(300)]);
    format!("status {status}, {} bytes: {text}", body.len())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::{Outcome, Script, Stop, Target, run};
    use crate::process::Process;

    /// Operations of two requests each; a server below answers 200 or, on `/bad`, 500.
    struct Pairs {
        left: u64,
        path: &'static str,
    }

    impl Script for Pairs {
        fn begin(&mut self) -> Option<u64> {
            self.left = self.left.checked_sub(1)?;
            Some(self.left)
        }

        fn requests_per_operation(&self) -> usize {
            2
        }

        fn write(&mut self, operation: u64, step: usize, request: &mut Vec<u8>) {
            request.extend_from_slice(
                format!("GET {}?{operation}.{step} HTTP/1.1\r\n\r\n", self.path).as_bytes(),
            );
        }

        fn accepts(&self, status: u16, body: &[u8]) -> bool {
            status == 200 && body == b"ok"
        }
    }

    fn serve_one_connection(listener: &TcpListener) {
        let (stream, _) = listener.accept().expect("a client");
        let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
        let mut stream = stream;
        while let Some(Ok(first)) = lines.next() {
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let status = if first.contains("/bad") { "500 No" } else { "200 OK" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn outcome_of(path: &'static str, operations: u64, connections: usize) -> Outcome {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::scope(|scope| {
            for _ in 0..connections {
                scope.spawn(|| serve_one_connection(&listener));
            }
            let target = Target { address, process: Process::own() };
            let mut script = Pairs { left: operations, path };
            run(target, connections, Stop::WithTheScript, &mut script).expect("a run")
        })
    }

    #[test]
    fn every_operation_counts_as_one_however_many_requests_it_takes() {
        let outcome = outcome_of("/good", 50, 4);
        assert_eq!((outcome.operations, outcome.answers, outcome.errors), (50.0, 100, 0));
    }

    #[test]
    fn an_unwanted_answer_is_an_error_with_an_excerpt() {
        let outcome = outcome_of("/bad", 1, 1);
        assert_eq!(outcome.errors, 2);
        assert_eq!(outcome.first_error.as_deref(), Some("status 500, 2 bytes: ok"));
    }
}
