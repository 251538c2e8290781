//! How clients ask: reads until they are answered, writes once, whatever becomes of the answer.

use std::time::Duration;

use http::Method;
use perihelion_emulator::faults::FAULT_HEADER;
use perihelion_emulator::regions::RegionId;
use perihelion_emulator::server::ConnectionFault;

use crate::client::Answer;
use crate::failure::Failure;
use crate::ring::{Range, read_ranges};
use crate::stage::Stage;
use crate::writes::shown;

const RANGES: &str = "/dbs/d/colls/c/pkranges";
/// More often than rules strike.
const TRIES_MAX: usize = 60;

type Headers<'a> = &'a [(&'static str, String)];

/// One request.
pub(crate) struct Ask {
    pub(crate) region: u8,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// What a client hears of a request.
pub(crate) enum Heard {
    /// The account's answer.
    Answer(Answer),
    /// A rule's, in its place: nothing was done.
    Refusal(Answer),
    /// Nothing: it may have been done or not.
    Nothing,
}

impl Stage {
    /// Asks, and asks again for as long as somebody else answers or nobody does. For what changes
    /// nothing.
    pub(crate) async fn send(
        &self,
        region: u8,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Answer {
        let (path, headers, body) = (path.to_owned(), headers.to_vec(), body.to_owned());
        let ask = Ask { region, method, path, headers, body };
        for _ in 0..TRIES_MAX {
            if let Heard::Answer(answer) = self.hear(&ask, None).await {
                return answer;
            }
        }
        panic!("{} {} in {region} is never answered", ask.method, ask.path);
    }

    /// Asks once. Account time passes for as long as the answer is waited for; a client with little
    /// patience leaves.
    pub(crate) async fn hear(&self, ask: &Ask, patience: Option<Duration>) -> Heard {
        let headers: Vec<(&str, &str)> =
            ask.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.asked.set(self.age());
        let method = ask.method.clone();
        let answer = self.account.send_in(RegionId(ask.region), method, &ask.path, &headers, &ask.body);
        tokio::pin!(answer);
        let mut waited = Duration::ZERO;
        let step = Duration::from_millis(1);
        let answer = loop {
            let leaves = patience.is_some_and(|patience| patience <= waited);
            // The runtime's time is paused as well: it jumps to the next timer.
            tokio::select! {
                biased;
                answer = &mut answer => break answer,
                () = std::future::ready(()), if leaves => return Heard::Nothing,
                () = tokio::time::sleep(step) => {
                    self.wait(step);
                    waited += step;
                }
            }
        };
        match answer.conduct {
            Some(ConnectionFault::Close | ConnectionFault::Stall) => Heard::Nothing,
            _ if answer.header(FAULT_HEADER).is_some() => Heard::Refusal(answer),
            _ => Heard::Answer(answer),
        }
    }

    /// Reads the ranges anew.
    pub(crate) async fn read_ranges(&mut self) -> Result<Vec<Range>, Failure> {
        let answer = self.send(self.hub, Method::GET, RANGES, &[], "").await;
        self.ranges = read_ranges(&answer.json())?;
        Ok(self.ranges.clone())
    }
}

impl Heard {
    /// In a few words.
    pub(crate) fn shown(&self) -> String {
        match self {
            Heard::Answer(answer) => shown(answer),
            Heard::Refusal(answer) => format!("a rule's {}", shown(answer)),
            Heard::Nothing => "no answer".to_owned(),
        }
    }
}
