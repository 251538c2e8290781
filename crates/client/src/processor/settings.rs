//! How a processor works, and what of it cannot work. Pure.

use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use driver::change_feed::{ChangeFeedMode, ChangeFeedStart};
use driver::{Error, ErrorKind};

use super::delivery::FailurePolicy;
use crate::Result;

/// Where a processor begins that has never run before. One that has goes on where it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessorStart {
    /// With the first change there ever was. Not for all versions and deletes.
    Beginning,
    /// With what is changed from now on.
    #[default]
    Now,
    /// With what was changed after this time, to the second. Not for all versions and deletes.
    After(SystemTime),
    /// Where it was. That it never ran before is an error: a name with a mistake in it does not start anew.
    Stored,
}

impl ProcessorStart {
    /// The start of the feed; none when there has to be a stored one.
    pub(super) fn of_feed(self) -> Option<ChangeFeedStart> {
        match self {
            ProcessorStart::Beginning => Some(ChangeFeedStart::Beginning),
            ProcessorStart::Now => Some(ChangeFeedStart::Now),
            ProcessorStart::After(time) => Some(ChangeFeedStart::After(time)),
            ProcessorStart::Stored => None,
        }
    }
}

/// What an instance obeys.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) instance: String,
    pub(super) start: ProcessorStart,
    pub(super) mode: ChangeFeedMode,
    pub(super) page_items: NonZeroU32,
    pub(super) poll_interval: Duration,
    pub(super) lease_expiry: Duration,
    pub(super) renew_interval: Duration,
    pub(super) acquire_interval: Duration,
    pub(super) leases_max: usize,
    pub(super) handlers_max: usize,
    pub(super) handler_timeout: Duration,
    pub(super) stop_timeout: Duration,
    pub(super) failures: FailurePolicy,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            instance: "instance".to_owned(),
            start: ProcessorStart::default(),
            mode: ChangeFeedMode::default(),
            page_items: NonZeroU32::new(100).expect("100 is not zero"),
            poll_interval: Duration::from_secs(1),
            lease_expiry: Duration::from_secs(30),
            renew_interval: Duration::from_secs(10),
            acquire_interval: Duration::from_secs(10),
            leases_max: usize::MAX,
            handlers_max: 64,
            handler_timeout: Duration::from_secs(300),
            stop_timeout: Duration::from_secs(30),
            failures: FailurePolicy {
                attempts_max: 5,
                wait_first: Duration::from_millis(200),
                wait_max: Duration::from_secs(30),
                has_hook: false,
            },
        }
    }
}

impl Settings {
    /// How long one request to the lease container may take: several fit before a lease runs out.
    pub(super) fn lease_request_timeout(&self) -> Duration {
        (self.lease_expiry / 3).clamp(Duration::from_millis(100), Duration::from_secs(10))
    }

    /// Says what cannot be obeyed.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        let refuse = |message: String| Err(Error::new(ErrorKind::Configuration, message));
        for (what, text) in [("name", name), ("instance", &self.instance)] {
            if text.is_empty() || text.len() > NAME_BYTES_MAX || text.contains(['/', '\\', '?', '#']) {
                return refuse(format!(
                    "the {what} '{text}' of the processor has to have 1 to {NAME_BYTES_MAX} bytes and none of / \\ ? #"
                ));
            }
        }
        for (what, time) in [
            ("poll interval", self.poll_interval),
            ("lease expiry", self.lease_expiry),
            ("renew interval", self.renew_interval),
            ("acquire interval", self.acquire_interval),
            ("handler timeout", self.handler_timeout),
        ] {
            if time.is_zero() {
                return refuse(format!("the {what} of the processor is zero: give it a duration"));
            }
        }
        if self.renew_interval * 2 > self.lease_expiry {
            return refuse(format!(
                "a lease that expires after {:?} cannot be renewed every {:?}: renew at least twice as often",
                self.lease_expiry, self.renew_interval
            ));
        }
        if self.leases_max == 0 || self.handlers_max == 0 {
            return refuse("an instance of a processor needs at least one lease and one handler".to_owned());
        }
        Ok(())
    }
}

/// Names are part of ids, which have 255 bytes at most.
const NAME_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_named() {
        let second = Duration::from_secs(1);
        let check = |name: &str, change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check(name).map_err(|error| error.message().to_owned())
        };
        assert_eq!(check("billing", |_| ()), Ok(()));
        for (name, change, part) in [
            ("a/b", (|_| ()) as fn(&mut Settings), "name 'a/b'"),
            ("", |_| (), "1 to 64 bytes"),
            ("p", |settings| settings.instance = "x".repeat(65), "instance"),
            ("p", |settings| settings.poll_interval = Duration::ZERO, "poll interval"),
            ("p", |settings| settings.renew_interval = settings.lease_expiry, "twice as often"),
            ("p", |settings| settings.leases_max = 0, "at least one lease"),
        ] {
            let message = check(name, change).expect_err(part);
            assert!(message.contains(part), "{message}");
        }
        assert!(
            Settings { lease_expiry: second, ..Settings::default() }.lease_request_timeout() < second / 2
        );
    }
}
