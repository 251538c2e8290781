//! The load: a number of requests in flight, for some time.

use std::time::Duration;

use crate::clock;
use crate::subject::Subject;

/// The rate that one client reached.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// The number of requests per second.
    pub per_second: f64,
    /// Processor time per request, in microseconds, without that of the server, which is another process.
    pub processor_us: f64,
}

/// Keeps `in_flight` requests in flight for `time`: each is followed by the next when its body has been read.
pub async fn run(subject: &Subject, in_flight: usize, time: Duration) -> Result<Rate, String> {
    let (processor, start) = (clock::processor_time(), clock::now());
    let until = start + time;
    let tasks: Vec<_> = (0..in_flight)
        .map(|_| {
            let subject = subject.clone();
            tokio::spawn(async move {
                let mut requests = 0_u64;
                while clock::now() < until {
                    let length = subject.get().await?;
                    if length != 256 {
                        return Err(format!("the body has {length} bytes, not 256"));
                    }
                    requests += 1;
                }
                Ok(requests)
            })
        })
        .collect();
    let mut requests = 0;
    for task in tasks {
        requests += task.await.map_err(|error| error.to_string())??;
    }
    let elapsed = (clock::now() - start).as_secs_f64();
    let processor = (clock::processor_time() - processor).as_secs_f64();
    let requests = requests as f64;
    Ok(Rate { per_second: requests / elapsed, processor_us: processor / requests * 1e6 })
}
