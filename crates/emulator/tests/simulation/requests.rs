//! How clients ask: reads until they are answered, writes once, whatever becomes of the response.

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
/// More often than rules strike.
const ATTEMPTS_MAX: usize = 60;

type Headers<'a> = &'a [(&'static str, String)];

/// One request.
pub(crate) struct TestRequest {
    pub(crate) region: u8,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// What a client hears of a request.
pub(crate) enum Delivery {
    /// The account's answer.
    Response(TestResponse),
    /// A rule's, in its place: nothing was done.
    InjectedError(TestResponse),
    /// Nothing: it may have been done or not.
    Lost,
}

impl Fixture {
    /// Asks, and asks again for as long as somebody else answers or nobody does. For what changes
    /// nothing.
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

    /// Asks once. Account time passes for as long as the response is waited for; a client with little
    /// patience leaves.
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
            // The runtime's time is paused as well: it jumps to the next timer.
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

    /// Reads the ranges anew.
    pub(crate) async fn read_ranges(&mut self) -> Result<Vec<PhysicalRange>, Failure> {
        let response = self.send(self.hub, Method::GET, RANGES, &[], "").await;
        self.ranges = read_ranges(&response.json())?;
        Ok(self.ranges.clone())
    }
}

impl Delivery {
    /// In a few words.
    pub(crate) fn summary(&self) -> String {
        match self {
            Delivery::Response(response) => summary(response),
            Delivery::InjectedError(response) => format!("a rule's {}", summary(response)),
            Delivery::Lost => "no answer".to_owned(),
        }
    }
}
