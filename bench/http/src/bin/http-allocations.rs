//! Counts allocations per request: prints a line per protocol with a number per client.

use std::alloc::System;
use std::process::ExitCode;

use http_bench::server::{self, SERVE, Server};
use http_bench::subject::{Kind, Protocol, Subject};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Enough requests for buffers to grow to their final size.
const WARM_UP: usize = 500;
const REQUESTS: usize = 2_000;

fn main() -> ExitCode {
    let serves = std::env::args().nth(1).is_some_and(|first| first == SERVE);
    match if serves { server::serve() } else { count() } {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("http-allocations: {message}");
            ExitCode::FAILURE
        }
    }
}

fn count() -> Result<(), String> {
    let server = Server::start()?;
    for protocol in Protocol::ALL {
        let mut counts = Vec::new();
        for kind in Kind::ALL {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            counts.push(format!("{:.3}", runtime.block_on(count_one(kind, protocol, &server))?));
        }
        println!("{}", counts.join(" "));
    }
    Ok(())
}

async fn count_one(kind: Kind, protocol: Protocol, server: &Server) -> Result<f64, String> {
    let subject = Subject::new(kind, protocol, server)?;
    for _ in 0..WARM_UP {
        subject.get().await?;
    }
    let region = Region::new(ALLOCATOR);
    for _ in 0..REQUESTS {
        subject.get().await?;
    }
    let change = region.change();
    Ok((change.allocations + change.reallocations) as f64 / REQUESTS as f64)
}
