//! Sends two GET requests to a URL, and prints the trace of each.
//!
//! ```text
//! cargo run -p perihelion-http --example get -- http://localhost:8081/
//! cargo run -p perihelion-http --example get -- https://localhost:8081/ --accept-invalid-certificates
//! ```

#![expect(clippy::print_stdout, reason = "printing is what this example is for")]

use std::error::Error;
use std::time::Duration;

use perihelion_http::trace::RequestTrace;
use perihelion_http::{Client, RequestBody};

const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (flags, urls): (Vec<&String>, Vec<_>) = arguments.iter().partition(|a| a.starts_with("--"));
    let [url] = urls[..] else {
        return Err("usage: get URL [--accept-invalid-certificates]".into());
    };
    let mut client = Client::builder().call_timeout(Some(Duration::from_secs(30)));
    if flags.iter().any(|flag| *flag == "--accept-invalid-certificates") {
        client = client.danger_accept_invalid_certificates();
    }
    let client = client.build()?;

    for round in ["first", "second"] {
        println!("the {round} request");
        let request = http::Request::get(url.as_str()).body(RequestBody::empty())?;
        match client.send(request).await {
            Ok(response) => {
                let status = response.status();
                let mut body = response.into_body();
                let mut length = 0;
                while let Some(chunk) = body.chunk().await {
                    length += chunk?.len();
                    if length > BODY_BYTES_MAX {
                        return Err("the body is too long".into());
                    }
                }
                print_trace(body.trace());
                println!("  {status}, {length} bytes\n");
            }
            Err(error) => {
                print_trace(error.trace());
                return Err(error.into());
            }
        }
    }
    Ok(())
}

fn print_trace(trace: &RequestTrace) {
    if let (Some(connection), Some(reuse), Some(protocol)) = (trace.connection, trace.reuse, trace.protocol) {
        println!("  connection {connection}, {reuse}, {protocol}");
    }
    if let (Some(local), Some(remote)) = (trace.local, trace.remote) {
        println!("  {local} -> {remote}");
    }
    let mut before = Duration::ZERO;
    for (step, complete) in trace.steps() {
        println!(
            "  {:>10} {:<26} (+{:?})",
            format!("{complete:?}"),
            step.to_string(),
            complete.saturating_sub(before)
        );
        before = complete;
    }
    println!("  the request was {}", trace.sent);
    if let Some(step) = trace.failed_step {
        println!("  failed while {step}");
    }
}
