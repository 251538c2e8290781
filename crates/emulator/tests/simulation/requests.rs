//! Sending requests: reads are retried until the account responds, writes are sent once.

use std::time::Duration;

use http::Method;
use perihelion_emulator::faults::FAULT_HEADER;
use perihelion_emulator::regions::RegionId;
use perihelion_emulator::server::ConnectionFault;

use crate::client::TestResponse;
use crate::failure::Failure;
use crate::fixture::Fixture;
use crate::partition_ranges::{PhysicalRange, read_ranges};
use crate::writes::summary;

const RANGES: &str = "/dbs/d/colls/c/pkranges";
/// More attempts than rules apply to.
const ATTEMPTS_MAX: usize = 60;

type Headers<'a> = &'a [(&'static str, String)];

/// One request of a client.
pub(crate) struct TestRequest {
    pub(crate) region: u8,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// What a client receives for a request.
pub(crate) enum Delivery {
    /// The response of the account.
    Response(TestResponse),
    /// An error of a fault rule: the request was not carried out.
    InjectedError(TestResponse),
    /// Nothing: the request may have been carried out or not.
    Lost,
}

impl Fixture {
    /// Sends a request and repeats it until the account responds. Only for reads.
    pub(crate) async fn send(
        &self,
        region: u8,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> TestResponse {
        let (path, headers, body) = (path.to_owned(), headers.to_vec(), body.to_owned());
        let ask = TestRequest { region, method, path, headers, body };
        for _ in 0..ATTEMPTS_MAX {
            if let Delivery::Response(response) = self.send_once(&ask, None).await {
                return response;
            }
        }
        panic!("{} {} in {region} is never answered", ask.method, ask.path);
    }

    /// Sends a request once. Account time advances while it waits; the client disconnects after `timeout`.
    pub(crate) async fn send_once(&self, ask: &TestRequest, timeout: Option<Duration>) -> Delivery {
        let headers: Vec<(&str, &str)> =
            ask.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.last_request_age.set(self.age());
        let method = ask.method.clone();
        let response = self.account.send_in(RegionId(ask.region), method, &ask.path, &headers, &ask.body);
        tokio::pin!(response);
        let mut waited = Duration::ZERO;
        let step = Duration::from_millis(1);
        let response = loop {
            let leaves = timeout.is_some_and(|timeout| timeout <= waited);
            // Polls in steps of paused runtime time, which jumps to the next timer.
            tokio::select! {
                biased;
                response = &mut response => break response,
                () = std::future::ready(()), if leaves => return Delivery::Lost,
                () = tokio::time::sleep(step) => {
                    self.wait(step);
                    waited += step;
                }
            }
        };
        match response.connection_fault {
            Some(ConnectionFault::Close | ConnectionFault::Stall) => Delivery::Lost,
            _ if response.header(FAULT_HEADER).is_some() => Delivery::InjectedError(response),
            _ => Delivery::Response(response),
        }
    }

    /// Reads the partition key ranges again.
    pub(crate) async fn read_ranges(&mut self) -> Result<Vec<PhysicalRange>, Failure> {
        let response = self.send(self.hub, Method::GET, RANGES, &[], "").await;
        self.ranges = read_ranges(&response.json())?;
        Ok(self.ranges.clone())
    }
}

impl Delivery {
    /// A short description for the log.
    pub(crate) fn summary(&self) -> String {
        match self {
            Delivery::Response(response) => summary(response),
            Delivery::InjectedError(response) => format!("a rule's {}", summary(response)),
            Delivery::Lost => "no answer".to_owned(),
        }
    }
}
