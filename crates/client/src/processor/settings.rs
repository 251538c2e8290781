//! The settings of a processor instance and their validation. Pure.

use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use driver::change_feed::{ChangeFeedMode, ChangeFeedStart};
use driver::{Error, ErrorKind};

use super::delivery::FailurePolicy;
use crate::Result;

/// Where a processor starts that has never run before. A processor that has run continues at its stored position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessorStart {
    /// With the first change of the container. Not available in the all versions and deletes mode.
    Beginning,
    /// With the changes that are made from now on.
    #[default]
    Now,
    /// With the changes after this time, to the second. Not available in the all versions and deletes mode.
    After(SystemTime),
    /// At its stored position. Starting fails if there is none, so that a mistyped name does not create a new
    /// processor.
    Stored,
}

impl ProcessorStart {
    /// The start of the feed; none if a stored position is required.
    pub(super) fn to_feed_start(self) -> Option<ChangeFeedStart> {
        match self {
            ProcessorStart::Beginning => Some(ChangeFeedStart::Beginning),
            ProcessorStart::Now => Some(ChangeFeedStart::Now),
            ProcessorStart::After(time) => Some(ChangeFeedStart::After(time)),
            ProcessorStart::Stored => None,
        }
    }
}

/// The settings of a processor instance.
#[derive(Clone, Debug)]
pub(super) struct ProcessorSettings {
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

impl Default for ProcessorSettings {
    fn default() -> ProcessorSettings {
        ProcessorSettings {
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

impl ProcessorSettings {
    /// The timeout of a request to the lease container, short enough for several attempts before a lease expires.
    pub(super) fn lease_request_timeout(&self) -> Duration {
        (self.lease_expiry / 3).clamp(Duration::from_millis(100), Duration::from_secs(10))
    }

    /// Returns an error that names the first setting that is invalid.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Configuration, message));
        for (what, text) in [("name", name), ("instance", &self.instance)] {
            if text.is_empty() || text.len() > NAME_BYTES_MAX || text.contains(['/', '\\', '?', '#']) {
                return invalid(format!(
                    "the {what} '{text}' of the processor must have 1 to {NAME_BYTES_MAX} bytes and none of / \\ ? #"
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
                return invalid(format!("the {what} of the processor is zero: set a longer duration"));
            }
        }
        if self.renew_interval.saturating_mul(2) > self.lease_expiry {
            return invalid(format!(
                "a lease that expires after {:?} cannot be renewed every {:?}: renew at least twice as often",
                self.lease_expiry, self.renew_interval
            ));
        }
        if self.leases_max == 0 || self.handlers_max == 0 {
            return invalid("an instance of a processor needs at least one lease and one handler".to_owned());
        }
        Ok(())
    }
}

/// The longest name in bytes: names are part of ids, which have 255 bytes at most.
const NAME_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_setting_is_named_in_the_error() {
        let second = Duration::from_secs(1);
        let check = |name: &str, change: fn(&mut ProcessorSettings)| {
            let mut settings = ProcessorSettings::default();
            change(&mut settings);
            settings.check(name).map_err(|error| error.message().to_owned())
        };
        assert_eq!(check("billing", |_| ()), Ok(()));
        for (name, change, part) in [
            ("a/b", (|_| ()) as fn(&mut ProcessorSettings), "name 'a/b'"),
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
            ProcessorSettings { lease_expiry: second, ..ProcessorSettings::default() }
                .lease_request_timeout()
                < second / 2
        );
    }
}
