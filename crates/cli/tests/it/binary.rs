//! Runs the built program in a temporary folder.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long a test waits for a response before it fails.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// The temporary folder of one test, which is deleted when it is dropped.
pub(crate) struct TestFolder(TempDir);

impl TestFolder {
    pub(crate) fn new() -> TestFolder {
        TestFolder(TempDir::with_prefix("peri-test-").expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A command of `peri`, without the settings of this machine in its environment.
    pub(crate) fn peri(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_peri"));
        command.args(arguments).current_dir(self.path()).env("PERI_HOME", self.path());
        command
            .env_remove("PERI_KEY")
            .env_remove("PERI_CONTROL")
            .env_remove("PERI_CONTROL_TOKEN")
            .env_remove("PERI_CONNECTION_STRING")
            .env_remove("COSMOSDB_DATABASE")
            .env_remove("COSMOSDB_CONTAINER")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command until it ends.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.peri(arguments).output().expect("the program runs")
    }

    /// Starts `peri up` on free ports and waits for its ready line.
    pub(crate) fn up(&self, arguments: &[&str]) -> Up {
        let free = ["up", "--port", "0", "--control-port", "0", "--json"];
        let command = self.peri(&[&free, arguments].concat());
        Up::start(command)
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

    /// The URL of its control port.
    pub(crate) fn control(&self) -> &str {
        self.ready["control"]["endpoint"].as_str().expect("an endpoint")
    }

    /// Sends it a signal by its short name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits until it ends; returns its exit status and the rest of its stdout and stderr.
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

/// Connects to an endpoint whose server may have been killed.
pub(crate) fn try_connect(endpoint: &Value) -> std::io::Result<TcpStream> {
    let endpoint = endpoint.as_str().expect("an endpoint");
    let authority = endpoint.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
    let stream = TcpStream::connect(authority.expect("an http endpoint that ends with a slash"))?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    Ok(stream)
}

/// The response to `GET path`, head and body.
pub(crate) fn get(endpoint: &Value, path: &str) -> String {
    let mut stream = connect(endpoint);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response
}

/// The output of a command as text.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}
