//! `peri up` in a process of its own, and what is in it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use perihelion::{Account, CosmosClient, Throughput};
use serde_json::Value;

/// The database of the comparison.
pub const DATABASE: &str = "bench";

/// Throughput that gives a container four physical partitions.
const THROUGHPUT: u32 = 40_000;

/// A running account; dropping it ends the process.
#[derive(Debug)]
pub struct Peri {
    program: PathBuf,
    home: PathBuf,
    child: Child,
    /// Kept open: a closed pipe would fail the next line.
    _stdout: BufReader<ChildStdout>,
    /// Where the account is, over TLS.
    pub endpoint: String,
    /// Its key.
    pub key: String,
    /// What to trust, as PEM.
    pub certificate: String,
    control: String,
}

/// Whether the server keeps an index of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Of every property, as by default.
    Everything,
    /// None: writing costs the server as little as it can.
    None,
}

/// What to start, and where.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// On a core of its own, which the clients leave alone.
    pub apart: bool,
}

/// Where the server runs when server and client have a core each.
const SERVER_CORE: usize = 0;

/// A command that stays on a core, if one is named.
pub fn on_core(program: &Path, core: Option<usize>) -> Command {
    match core {
        None => Command::new(program),
        Some(core) => {
            let mut command = Command::new("taskset");
            command.args(["--cpu-list", &core.to_string()]).arg(program);
            command
        }
    }
}

impl Peri {
    /// Starts `program up` with these regions.
    pub fn start(program: &Program, regions: &str) -> Result<Peri, String> {
        // A certificate and nothing else, gone with this value.
        let name = format!("perihelion-driver-bench-{}-{}", std::process::id(), regions.len());
        let home = std::env::temp_dir().join(name);
        let mut command = on_core(&program.path, program.apart.then_some(SERVER_CORE));
        command
            .args(["up", "--port", "0", "--control-port", "0", "--json", "--regions", regions])
            .env("PERI_HOME", &home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("{command:?} does not start: {error}"))?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("it has no output")?);
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        let ready: Value = match read {
            Ok(_) => serde_json::from_str(&line).unwrap_or_default(),
            Err(error) => return Err(format!("peri is silent: {error}")),
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let account = &ready["account"];
        let parts = (text(&account["endpoint"]), text(&account["key"]), text(&ready["control"]["endpoint"]));
        let mut peri = Peri {
            program: program.path.clone(),
            home,
            child,
            _stdout: stdout,
            endpoint: String::new(),
            key: String::new(),
            certificate: String::new(),
            control: String::new(),
        };
        let (Some(endpoint), Some(key), Some(control)) = parts else {
            return Err(format!("peri did not say where it is, but {line:?}"));
        };
        // The same port speaks both.
        peri.endpoint = endpoint.replacen("http://", "https://", 1);
        (peri.key, peri.control) = (key, control);
        peri.certificate = peri.command(&["cert"])?;
        Ok(peri)
    }

    /// Runs another command of the program against this account, and gives what it prints.
    pub fn command(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("PERI_HOME", &self.home).env("PERI_CONTROL", &self.control);
        let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
        if !output.status.success() {
            return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The metrics of the account, as Prometheus reads them.
    pub fn metrics(&self) -> Result<String, String> {
        let address = self.control.trim_start_matches("http://").trim_end_matches('/');
        let scrape = || -> std::io::Result<String> {
            let mut socket = TcpStream::connect(address)?;
            write!(socket, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
            let mut text = String::new();
            socket.read_to_string(&mut text)?;
            Ok(text)
        };
        scrape().map_err(|error| format!("the control port at {address}: {error}"))
    }

    /// The account, for the drivers.
    pub fn account(&self) -> Result<Account, String> {
        Account::with_key(&self.endpoint, &self.key).map_err(|error| error.to_string())
    }

    /// A client for everything that is not measured.
    pub fn client(&self) -> Result<CosmosClient, String> {
        CosmosClient::builder(self.account()?)
            .trust_pem(self.certificate.as_bytes())
            .build()
            .map_err(|error| error.to_string())
    }

    /// Makes an empty container, in place of one of that name.
    pub async fn new_container(&self, name: &str, indexing: Indexing) -> Result<(), String> {
        let client = self.client()?;
        let error = |error: perihelion::Error| format!("container {name}: {error}");
        // Both may be there already, or not.
        let _ = client.create_database(DATABASE).await;
        let database = client.database(DATABASE);
        let _ = database.container(name).delete().await;
        let mut properties =
            serde_json::json!({"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        if indexing == Indexing::None {
            properties["indexingPolicy"] = serde_json::json!({"indexingMode": "none", "automatic": false});
        }
        let properties = serde_json::from_value(properties).map_err(|error| error.to_string())?;
        let throughput = Throughput::Manual(THROUGHPUT);
        database.create_container_with(&properties, &throughput).await.map_err(error)?;
        Ok(())
    }
}

impl Drop for Peri {
    fn drop(&mut self) {
        // It may have ended already; there is nothing to be done about it either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}
