//! The servers of the comparison: how each is started and what it is asked.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::children::OwnedChild;
use crate::client::Client;
use crate::generator::Target;
use crate::process::Process;
use crate::request::Account;
use crate::signature::{Key, WELL_KNOWN_KEY};

/// One server of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Perihelion,
    Vercel,
    InMemory,
    Canned,
}

/// How a client ends up asking a server for a cross-partition ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordering {
    /// The rewritten query, once per physical partition, merged by the client.
    PerRange,
    /// The query as written, once; the server knows no partitions.
    Direct,
}

impl Kind {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Kind; 4] = [Kind::Perihelion, Kind::Vercel, Kind::InMemory, Kind::Canned];

    /// The name in tables and in `--only`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Perihelion => "Perihelion",
            Kind::Vercel => "vercel",
            Kind::InMemory => "in-memory",
            Kind::Canned => "canned",
        }
    }

    /// Whether it stores anything. The canned server only answers point reads.
    pub(crate) fn stores(self) -> bool {
        self != Kind::Canned
    }

    /// How it is asked for a cross-partition ORDER BY.
    pub(crate) fn ordering(self) -> Ordering {
        match self {
            Kind::Perihelion | Kind::InMemory | Kind::Canned => Ordering::PerRange,
            Kind::Vercel => Ordering::Direct,
        }
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// `peri`, from `PERI` or built from the repository.
    pub(crate) peri: PathBuf,
    /// The folder with the two Rust peers, which is where this program is.
    pub(crate) peers: PathBuf,
    /// The folder with `start.js` and its packages.
    pub(crate) vercel: PathBuf,
    /// The recorded answer for the canned server.
    pub(crate) answer: PathBuf,
    /// Whether the servers' own messages are shown.
    pub(crate) logs: bool,
}

impl Programs {
    /// The command that starts a server on a free loopback port.
    fn command(&self, kind: Kind) -> Command {
        match kind {
            Kind::Perihelion => {
                let mut command = Command::new(&self.peri);
                command.args(["up", "--port", "0", "--control-port", "0", "--json"]);
                command
            }
            Kind::Vercel => {
                let mut command = Command::new("node");
                command.arg(self.vercel.join("start.js")).arg("0");
                command
            }
            Kind::InMemory => Command::new(self.peers.join("in-memory-emulator")),
            Kind::Canned => {
                let mut command = Command::new(self.peers.join("canned"));
                if self.answer.exists() {
                    command.arg("--answer").arg(&self.answer);
                }
                command
            }
        }
    }

    /// Starts a server and waits for the line that says it listens.
    pub(crate) fn start(&self, kind: Kind) -> Result<Server, String> {
        self.start_with(kind, &[])
    }

    /// The same, with more arguments.
    pub(crate) fn start_with(&self, kind: Kind, arguments: &[String]) -> Result<Server, String> {
        let mut command = self.command(kind);
        command.args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(if self.logs { Stdio::inherit() } else { Stdio::null() });
        // A developer's setting that makes some servers record a stack per error would handicap them.
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
        let (child, stdout) = OwnedChild::spawn(&mut command)
            .map_err(|error| format!("{}: cannot start {command:?}: {error}", kind.name()))?;
        let ready = Value::Null;
        let mut server = Server { kind, child, account: None, ready, stdout: BufReader::new(stdout) };
        server.account = Some(server.read_ready_line()?);
        Ok(server)
    }
}

/// A running server; dropping it ends the process.
pub(crate) struct Server {
    pub(crate) kind: Kind,
    child: OwnedChild,
    account: Option<Account>,
    /// What `peri up --json` said; nothing for the others.
    ready: Value,
    /// Kept open: a closed pipe would fail the server's next line.
    stdout: BufReader<std::process::ChildStdout>,
}

impl Server {
    /// How to reach it and sign for it.
    pub(crate) fn account(&self) -> &Account {
        self.account.as_ref().expect("set before the server is handed out")
    }

    /// The same, in one of its regions.
    pub(crate) fn account_in(&self, region: usize) -> Result<Account, String> {
        let endpoint = self.ready["account"]["regions"][region]["endpoint"].as_str();
        let port = endpoint.and_then(port_of).ok_or_else(|| format!("there is no region {region}"))?;
        Ok(Account { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), ..self.account().clone() })
    }

    /// A plain client of its control port, which takes no signature and minds none.
    pub(crate) fn control(&self) -> Result<Client, String> {
        let port = self.ready["control"]["endpoint"].as_str().and_then(port_of).ok_or("no control port")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Client::connect(Account { address, ..self.account().clone() }).map_err(|error| error.to_string())
    }

    /// The process, for its memory and processor time.
    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// What the generator needs to know.
    pub(crate) fn target(&self) -> Target {
        Target { address: self.account().address, process: self.process() }
    }

    /// A plain client for set-up and checks.
    pub(crate) fn client(&self) -> Result<Client, String> {
        Client::connect(self.account().clone()).map_err(|error| format!("{}: {error}", self.kind.name()))
    }

    fn read_ready_line(&mut self) -> Result<Account, String> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        read.map_err(|error| format!("{}: reading its first line: {error}", self.kind.name()))?;
        self.ready = serde_json::from_str(&line).unwrap_or_default();
        parse_ready_line(&line)
            .map_err(|error| format!("{}: {error}; its first line was {line:?}", self.kind.name()))
    }
}

/// Reads either the JSON line of `peri up --json` or `listening on http://127.0.0.1:PORT`.
///
/// Only the port is taken: every server is reached over plain HTTP on the loopback address.
fn parse_ready_line(line: &str) -> Result<Account, String> {
    let (endpoint, key) = match serde_json::from_str::<Value>(line) {
        Ok(ready) => {
            let text = |name: &str| ready["account"][name].as_str().map(str::to_owned);
            (text("endpoint").ok_or("no account.endpoint")?, text("key").ok_or("no account.key")?)
        }
        Err(_) => {
            let endpoint =
                line.trim().strip_prefix("listening on ").ok_or("it did not say where it listens")?;
            (endpoint.to_owned(), WELL_KNOWN_KEY.to_owned())
        }
    };
    let port: u16 = port_of(&endpoint).ok_or_else(|| format!("no port in {endpoint}"))?;
    Ok(Account { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), key: Key::parse(&key)? })
}

fn port_of(endpoint: &str) -> Option<u16> {
    endpoint.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok())
}

/// Keeps the canned server's answer in a file of its own that goes away with this value.
pub(crate) struct RecordedAnswer(PathBuf);

impl RecordedAnswer {
    /// A path nothing else uses.
    pub(crate) fn reserve() -> RecordedAnswer {
        RecordedAnswer(std::env::temp_dir().join(format!("perihelion-bench-{}.http", std::process::id())))
    }

    /// Where it is, or will be.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes the bytes of a whole response.
    pub(crate) fn write(&self, response: &[u8]) -> Result<(), String> {
        let file = File::create(&self.0).and_then(|mut file| std::io::Write::write_all(&mut file, response));
        file.map_err(|error| format!("{}: {error}", self.0.display()))
    }
}

impl Drop for RecordedAnswer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::parse_ready_line;

    #[test]
    fn both_forms_of_the_ready_line_give_a_loopback_port() {
        let json = r#"{"ready":true,"account":{"endpoint":"https://localhost:4321/","key":"AAAA"}}"#;
        for (line, port) in [(json, 4321), ("listening on http://127.0.0.1:99\n", 99)] {
            let account = parse_ready_line(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(account.address.to_string(), format!("127.0.0.1:{port}"));
        }
    }

    #[test]
    fn a_line_without_a_port_is_an_error() {
        for line in ["", "hello", "listening on somewhere", r#"{"ready":true}"#] {
            assert!(parse_ready_line(line).is_err(), "{line}");
        }
    }
}
