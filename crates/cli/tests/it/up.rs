//! `peri up`: the ready line, signals, and errors at the start.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;

use emulator::WELL_KNOWN_KEY;
use emulator::clock::Stopwatch;
use serde_json::{Value, json};

use crate::binary::{TestFolder, connect, get, text};

#[test]
fn the_ready_line_has_exactly_the_documented_properties() {
    let folder = TestFolder::new();
    let up = folder.up(&[]);
    let endpoint = up.account()["endpoint"].as_str().unwrap();
    let control = up.ready["control"]["endpoint"].as_str().unwrap();
    let region = |at: usize| up.account()["regions"][at]["endpoint"].as_str().unwrap();
    for url in [endpoint, control, region(1), region(2)] {
        assert!(url.starts_with("http://localhost:") && url.ends_with('/'), "{url}");
    }
    let expected = json!({
        "ready": true,
        "account": {
            "endpoint": endpoint,
            "key": WELL_KNOWN_KEY,
            "connectionString": format!("AccountEndpoint={endpoint};AccountKey={WELL_KNOWN_KEY};"),
            "regions": [
                { "name": "West US", "endpoint": endpoint, "write": true },
                { "name": "East US", "endpoint": region(1), "write": false },
                { "name": "North Europe", "endpoint": region(2), "write": false },
            ],
        },
        "control": { "endpoint": control },
    });
    assert_eq!(up.ready, expected);
}

#[test]
fn after_the_ready_line_the_account_and_the_control_port_respond() {
    let folder = TestFolder::new();
    let up = folder.up(&[]);
    assert!(
        get(&up.account()["endpoint"], "/").starts_with("HTTP/1.1 401 "),
        "an unsigned request is rejected"
    );
    for path in ["/health/ready", "/health/live"] {
        assert!(get(&up.ready["control"]["endpoint"], path).starts_with("HTTP/1.1 200 "), "{path}");
    }
    assert!(get(&up.ready["control"]["endpoint"], "/nothing").starts_with("HTTP/1.1 404 "));
}

#[test]
fn the_key_comes_from_the_flag_or_the_environment() {
    let folder = TestFolder::new();
    assert_eq!(folder.up(&["--key", "c2VjcmV0"]).account()["key"], "c2VjcmV0");
    let mut command = folder.peri(&["up", "--port", "0", "--control-port", "0", "--json"]);
    command.env("PERI_KEY", "b3RoZXI=");
    let up = crate::binary::Up::start(command);
    assert_eq!(up.account()["key"], "b3RoZXI=");
    assert!(up.account()["connectionString"].as_str().unwrap().ends_with(";AccountKey=b3RoZXI=;"));
}

#[cfg(unix)]
#[test]
fn signals_stop_it_cleanly_within_a_second() {
    for signal in ["INT", "TERM"] {
        let folder = TestFolder::new();
        let up = folder.up(&[]);
        // One connection that stays idle and one with a request that never arrives in full.
        let _idle = connect(&up.account()["endpoint"]);
        let mut half = connect(&up.account()["endpoint"]);
        half.write_all(b"POST /dbs HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nhalf").unwrap();
        let stopwatch = Stopwatch::start();
        up.signal(signal);
        let (status, stdout, stderr) = up.end();
        assert!(stopwatch.elapsed().as_millis() < 1_000, "{signal} took {:?}", stopwatch.elapsed());
        assert_eq!(status.code(), Some(0), "{signal}: {stderr}");
        assert_eq!((stdout.as_str(), stderr.as_str()), ("", ""), "nothing but the ready line is message");
    }
}

#[cfg(unix)]
#[test]
fn a_second_signal_exits_at_once() {
    let folder = TestFolder::new();
    let up = folder.up(&[]);
    // A request in flight keeps a clean stop waiting, so there is something to cut short. The
    // server asks for the body once the request is in flight.
    let mut half = connect(&up.account()["endpoint"]);
    let head = "POST /dbs HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n";
    half.write_all(head.as_bytes()).unwrap();
    half.read_exact(&mut [0; 25]).unwrap();
    up.signal("INT");
    up.signal("TERM");
    assert_eq!(up.end().0.code(), Some(130));
}

#[test]
fn a_port_in_use_is_an_error_that_names_the_process() {
    let folder = TestFolder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let cases = [
        (["--port", &port, "--control-port", "0"], "--port 0"),
        (["--port", "0", "--control-port", &port], "--control-port 0"),
    ];
    for (options, advice) in cases {
        let output = folder.run(&[&["up", "--json"], &options[..]].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(stderr.contains(&format!("port {port} is already in use")), "{stderr}");
        assert!(stderr.contains(advice), "{stderr}");
        assert_eq!(text(&output.stdout), "", "a script must not take this for a ready line");
        if cfg!(target_os = "linux") {
            assert!(stderr.contains(&format!("(process {})", std::process::id())), "{stderr}");
        }
    }
}

#[test]
fn invalid_options_fail_with_a_reason_and_an_exit_code() {
    let folder = TestFolder::new();
    let cases: [(&[&str], i32, &str); 16] = [
        (&["up", "--key", "not base64!"], 2, "base64"),
        (&["up", "--key", ""], 2, "key"),
        (&["up", "--port", "65536"], 2, "65536"),
        (&["up", "--partitions", "0"], 2, "partitions"),
        (&["up", "--ru", "sometimes"], 2, "enforce"),
        (&["up", "--bind", "example.com"], 2, "example.com"),
        (
            &[
                "up",
                "--port",
                "0",
                "--control-port",
                "0",
                "--bind",
                "203.0.113.1",
                "--key",
                "a2V5",
                "--control-token",
                "t",
            ],
            4,
            "203.0.113.1",
        ),
        (&["up", "--bind", "203.0.113.1"], 2, "--key"),
        (&["up", "--bind", "0.0.0.0", "--control-token", "t"], 2, "everyone knows the key"),
        (&["up", "--bind", "0.0.0.0", "--key", "a2V5"], 2, "--control-token"),
        (&["up", "--control-token", "two words"], 2, "visible ASCII"),
        (&["up", "--entra", "on"], 2, "jwks=FILE"),
        (&["up", "--entra", "jwks=/does/not/exist"], 2, "jwks_uri"),
        (&["up", "--secondary-key", "no base64"], 2, "key"),
        (&["up", "--read-only-key", "no base64"], 2, "key"),
        (&["down"], 2, "down"),
    ];
    for (arguments, code, reason) in cases {
        let output = folder.run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn without_json_the_banner_shows_endpoints_and_connection_strings() {
    let folder = TestFolder::new();
    let mut child =
        folder.peri(&["up", "--port", "0", "--control-port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut banner = String::new();
    while !banner.contains("in memory") {
        assert_ne!(stdout.read_line(&mut banner).unwrap(), 0, "the banner ended early: {banner}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        banner.starts_with(&format!("  perihelion {}   local cloud ready in ", env!("CARGO_PKG_VERSION")))
    );
    for scheme in ["https", "http"] {
        assert!(banner.contains(&format!("AccountEndpoint={scheme}://localhost:")), "{banner}");
    }
    assert!(banner.contains(&format!(";AccountKey={WELL_KNOWN_KEY};")), "{banner}");
    assert!(banner.contains("/health/ready"), "{banner}");
}

#[cfg(unix)]
#[test]
fn a_closed_stdout_does_not_stop_the_account() {
    let folder = TestFolder::new();
    let mut command = folder.peri(&["up", "--port", "0", "--control-port", "0", "--json", "-v"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut log = String::new();
    while !log.contains("ready") {
        assert_ne!(stderr.read_line(&mut log).unwrap(), 0, "it ended: {log}");
    }
    let endpoint = log.split('"').find(|part| part.starts_with("http://")).expect("the endpoint is logged");
    let response = get(&Value::from(endpoint), "/");
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn the_account_survives_running_out_of_file_handles() {
    let folder = TestFolder::new();
    let peri = env!("CARGO_BIN_EXE_peri");
    let script = format!("ulimit -n 64 && exec '{peri}' up --port 0 --control-port 0 --json");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).env("PERI_HOME", folder.path()).env_remove("PERI_KEY");
    let up = crate::binary::Up::start(command);
    let flood: Vec<_> = (0..80).map(|_| connect(&up.account()["endpoint"])).collect();
    let response = get(&up.account()["endpoint"], "/");
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
    drop(flood);
}
