//! Runs the built program in a folder of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

/// Nothing here takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of its own for one test, gone afterwards.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new() -> Home {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("peri-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Home(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The program, with nothing of this machine's settings in its environment.
    pub(crate) fn peri(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_peri"));
        command.args(arguments).current_dir(&self.0).env("PERI_HOME", &self.0);
        command
            .env_remove("PERI_KEY")
            .env_remove("PERI_CONTROL")
            .env_remove("PERI_CONNECTION_STRING")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.peri(arguments).output().expect("the program runs")
    }

    /// Starts it on free ports and waits until it says that it is ready.
    pub(crate) fn up(&self, arguments: &[&str]) -> Up {
        let free = ["up", "--port", "0", "--control-port", "0", "--json"];
        let command = self.peri(&[&free, arguments].concat());
        Up::start(command)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running `peri up`. Dropping it kills it.
pub(crate) struct Up {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) ready: Value,
}

impl Up {
    pub(crate) fn start(mut command: Command) -> Up {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let Ok(ready) = serde_json::from_str(&line) else {
            let mut stderr = String::new();
            let _ = child.kill();
            let _ = child.stderr.take().expect("piped").read_to_string(&mut stderr);
            panic!("no ready line, but {line:?}; stderr: {stderr}");
        };
        Up { child, stdout, ready }
    }

    pub(crate) fn account(&self) -> &Value {
        &self.ready["account"]
    }

    /// Where its control port is.
    pub(crate) fn control(&self) -> &str {
        self.ready["control"]["endpoint"].as_str().expect("an endpoint")
    }

    /// Sends a signal by its short name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits for the end; returns how it ended, and what else it wrote to stdout and stderr.
    pub(crate) fn end(mut self) -> (ExitStatus, String, String) {
        let mut stdout = String::new();
        let mut stderr = String::new();
        self.stdout.read_to_string(&mut stdout).expect("text");
        self.child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
        (self.child.wait().expect("it ends"), stdout, stderr)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects to the host and port of an `http://…/` endpoint.
pub(crate) fn connect(endpoint: &Value) -> TcpStream {
    try_connect(endpoint).expect("connects")
}

/// The same, to a server that may be gone.
pub(crate) fn try_connect(endpoint: &Value) -> std::io::Result<TcpStream> {
    let endpoint = endpoint.as_str().expect("an endpoint");
    let authority = endpoint.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
    let stream = TcpStream::connect(authority.expect("an http endpoint that ends with a slash"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Everything the server answers to `GET path`, head and body.
pub(crate) fn get(endpoint: &Value, path: &str) -> String {
    let mut stream = connect(endpoint);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// What was written, as text.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}
