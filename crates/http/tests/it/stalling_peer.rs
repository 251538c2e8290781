//! An HTTP/2 peer, frame by frame, that stops reading when a test says so and records everything that it receives.
//!
//! It decodes no headers. [`requests_in`] does so afterwards: it replays the recorded bytes to a server of `h2`.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The number of streams that the peer allows at a time.
pub(crate) const STREAMS_MAX: u8 = 16;

const PREFACE_LENGTH: usize = 24;
const FRAME_HEAD_LENGTH: usize = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
/// `:status: 200`, from HPACK's table.
const STATUS_200: &[u8] = &[0x88];

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const REFUSED_STREAM: u8 = 7;

/// What the peer does with the connections that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Reads, and responds to each request.
    Serve,
    /// Reads nothing, but sends a byte now and then: it is slow, and not dead.
    Stall,
    /// Reads, and refuses each request with `REFUSED_STREAM`.
    Refuse,
    /// Reads, sends a GOAWAY with the last stream it had read, and ignores later streams.
    GoAway,
    /// Reads what has arrived, and then closes the connection.
    Close,
    /// Resets the TCP connection at once, without reading.
    Reset,
}

/// What the peer has received and done on one connection.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Every byte of the connection, in order, without TLS.
    pub(crate) bytes: Vec<u8>,
    /// The streams whose HEADERS the peer has neither refused nor ignored.
    pub(crate) executed: BTreeSet<u32>,
}

/// A peer with its connections. They end when it is dropped.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    mode: watch::Sender<Mode>,
    records: Arc<Mutex<Vec<Arc<Mutex<Record>>>>>,
    open: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

impl Peer {
    pub(crate) async fn start(tls: Option<TlsAcceptor>) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        // Accepted sockets inherit it: a peer that stops reading soon blocks the client.
        socket2::SockRef::from(&listener).set_recv_buffer_size(16 * 1024).expect("the option is supported");
        let (mode, modes) = watch::channel(Mode::Serve);
        let (open_count, open) = watch::channel(0);
        let records: Arc<Mutex<Vec<_>>> = Arc::default();
        let mut tasks = JoinSet::new();
        let all_records = Arc::clone(&records);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let record = Arc::new(Mutex::new(Record::default()));
                let mut all_records = all_records.lock().expect("no test panics");
                let is_first = all_records.is_empty();
                all_records.push(Arc::clone(&record));
                drop(all_records);
                let (tls, modes, open) = (tls.clone(), modes.clone(), open_count.clone());
                connections.spawn(async move {
                    open.send_modify(|count| *count += 1);
                    // Ends with an error if the client closes the connection first.
                    let _ = serve(stream, tls, modes, is_first, &record).await;
                    open.send_modify(|count| *count -= 1);
                });
            }
        });
        Peer { address, mode, records, open, _tasks: tasks }
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Waits until all connections have ended, and returns what the peer received on each.
    pub(crate) async fn records(mut self) -> Vec<Record> {
        self.open.wait_for(|open| *open == 0).await.expect("the peer runs");
        let records = std::mem::take(&mut *self.records.lock().expect("no test panics"));
        records
            .into_iter()
            .map(|record| std::mem::take(&mut *record.lock().expect("no test panics")))
            .collect()
    }
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    modes: watch::Receiver<Mode>,
    is_first: bool,
    record: &Mutex<Record>,
) -> io::Result<()> {
    let control = socket2::SockRef::from(&stream).try_clone()?;
    let ended = match tls {
        None => serve_frames(stream, modes, is_first, record).await,
        Some(tls) => serve_frames(tls.accept(stream).await?, modes, is_first, record).await,
    };
    if matches!(ended, Ok(Mode::Reset)) {
        control.set_linger(Some(Duration::ZERO))?;
    }
    Ok(())
}

/// Serves one connection until the client or the mode ends it, and returns that mode.
async fn serve_frames(
    stream: impl AsyncRead + AsyncWrite,
    mut modes: watch::Receiver<Mode>,
    is_first: bool,
    record: &Mutex<Record>,
) -> io::Result<Mode> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    // SETTINGS_MAX_CONCURRENT_STREAMS, and windows of a stream and of the connection that let long bodies in.
    let mut hello = frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, STREAMS_MAX, 0, 4, 1, 0, 0, 0]);
    hello.extend(frame(WINDOW_UPDATE, 0, 0, &0x1000_0000_u32.to_be_bytes()));
    writer.write_all(&hello).await?;
    writer.flush().await?;
    let mut heartbeat = tokio::time::interval(Duration::from_millis(1));
    let (mut parsed, mut going_away) = (PREFACE_LENGTH, None);
    // The stream whose response stays open, so that the peer can send a byte at any time.
    let open_stream = is_first.then_some(1);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let mode = *modes.borrow_and_update();
        match mode {
            Mode::Reset => return Ok(mode),
            Mode::Stall => {
                tokio::select! {
                    changed = modes.changed() => changed.map_err(|_| io::ErrorKind::BrokenPipe)?,
                    _ = heartbeat.tick(), if is_first => writer.write_all(&frame(DATA, 0, 1, b".")).await?,
                }
                writer.flush().await?;
            }
            Mode::GoAway if going_away.is_none() => {
                let last = record.lock().expect("no test panics").executed.last().copied().unwrap_or(0);
                going_away = Some(last);
                let payload = [last.to_be_bytes(), [0; 4]].concat();
                writer.write_all(&frame(GOAWAY, 0, 0, &payload)).await?;
                writer.flush().await?;
            }
            Mode::Serve | Mode::Refuse | Mode::GoAway | Mode::Close => {
                let read = tokio::select! {
                    changed = modes.changed() => {
                        changed.map_err(|_| io::ErrorKind::BrokenPipe)?;
                        continue;
                    }
                    read = reader.read(&mut buffer) => read?,
                    // Nothing more has arrived for now: the frame that was cut off never ends.
                    _ = heartbeat.tick(), if mode == Mode::Close => return Ok(mode),
                };
                if read == 0 {
                    return Ok(mode);
                }
                let mut output = Vec::new();
                {
                    let mut record = record.lock().expect("no test panics");
                    record.bytes.extend(&buffer[..read]);
                    let Record { bytes, executed } = &mut *record;
                    while let Some((kind, flags, stream, end)) = next_frame(bytes, parsed) {
                        parsed = end;
                        match kind {
                            SETTINGS if flags & ACK == 0 => output.extend(frame(SETTINGS, ACK, 0, &[])),
                            HEADERS if mode == Mode::Refuse => {
                                let refused = [0, 0, 0, REFUSED_STREAM];
                                output.extend(frame(RST_STREAM, 0, stream, &refused));
                            }
                            HEADERS if going_away.is_some_and(|last| stream > last) => {}
                            HEADERS => {
                                executed.insert(stream);
                                let end = if Some(stream) == open_stream { 0 } else { END_STREAM };
                                output.extend(frame(HEADERS, END_HEADERS | end, stream, STATUS_200));
                            }
                            _ => {}
                        }
                    }
                }
                writer.write_all(&output).await?;
                writer.flush().await?;
            }
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames here are short");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The type, flags, stream and end of the frame at `start`, if all of it has arrived.
fn next_frame(bytes: &[u8], start: usize) -> Option<(u8, u8, u32, usize)> {
    let head = bytes.get(start..start + FRAME_HEAD_LENGTH)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let end = start + FRAME_HEAD_LENGTH + length;
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    (end <= bytes.len()).then_some((head[3], head[4], stream, end))
}

/// The stream and path of each request whose HEADERS are among the bytes that a client sent.
pub(crate) async fn requests_in(bytes: &[u8]) -> Vec<(u32, String)> {
    let Some(preface) = bytes.get(..PREFACE_LENGTH) else { return Vec::new() };
    // Headers refer to earlier headers of the connection, and to nothing else.
    let (mut replay, mut requests) = (preface.to_vec(), 0);
    let mut start = PREFACE_LENGTH;
    while let Some((kind, flags, _, end)) = next_frame(bytes, start) {
        if kind == HEADERS || kind == CONTINUATION || (kind == SETTINGS && flags & ACK == 0) {
            replay.extend(&bytes[start..end]);
        }
        requests += usize::from(kind == HEADERS);
        start = end;
    }
    let (mut client, server) = tokio::io::duplex(replay.len());
    client.write_all(&replay).await.expect("all of it fits");
    let server = h2::server::Builder::new().handshake::<_, Bytes>(server).await;
    let mut server = server.expect("the client speaks HTTP/2");
    let mut open = Vec::new();
    while open.len() < requests {
        open.push(server.accept().await.expect("the connection is open").expect("the request is valid"));
    }
    let found = open
        .iter()
        .map(|(request, response)| (response.stream_id().as_u32(), request.uri().path().to_owned()));
    found.collect()
}
