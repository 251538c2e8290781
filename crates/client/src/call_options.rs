//! The options that every call has, implemented once for all types of calls.

use std::time::Duration;

use driver::Region;
use driver::options::{
    HeaderOptions, HedgingOptions, OperationOptions, Priority, RegionOptions, TimeoutOptions,
};

/// Changes options before a call is made. An option that is set wins over an earlier value of the same option, and no
/// other option is lost.
pub(crate) trait SetOptions {
    /// Merges these options into those that were set before.
    fn merge(&mut self, newer: OperationOptions);

    fn merge_timeouts(&mut self, newer: TimeoutOptions) {
        self.merge(OperationOptions::new().with_timeouts(newer));
    }

    fn merge_headers(&mut self, newer: HeaderOptions) {
        self.merge(OperationOptions::new().with_headers(newer));
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.merge_timeouts(TimeoutOptions::new().with_end_to_end(timeout));
    }

    fn set_excluded_regions(&mut self, regions: impl IntoIterator<Item = impl Into<Region>>) {
        let regions = RegionOptions::new().with_excluded(regions);
        self.merge(OperationOptions::new().with_regions(regions));
    }

    fn set_hedging(&mut self, hedging: HedgingOptions) {
        self.merge(OperationOptions::new().with_hedging(hedging));
    }

    fn set_header(&mut self, name: &str, value: String) {
        self.merge_headers(HeaderOptions::new().with_header(name, value));
    }

    fn set_priority(&mut self, priority: Priority) {
        self.merge_headers(HeaderOptions::new().with_priority(priority));
    }

    fn set_throughput_bucket(&mut self, bucket: u8) {
        self.merge_headers(HeaderOptions::new().with_throughput_bucket(bucket));
    }
}

impl SetOptions for OperationOptions {
    fn merge(&mut self, newer: OperationOptions) {
        *self = newer.or(self);
    }
}

/// Gives a type of call the methods that set its options. The type has a method `options_mut`; the text says what the
/// timeout is about. A type with a method `options` of its own is marked `without options`.
macro_rules! call_options {
    (impl[$($generic:tt)*] $call:ty, $timeout:literal) => {
        $crate::call_options::call_options!(impl[$($generic)*] $call, $timeout, without options);

        impl<$($generic)*> $call {
            /// Merges these options into those of the call: what they set wins over what was set before, and what they
            /// do not set stays as it was.
            pub fn options(mut self, options: $crate::OperationOptions) -> Self {
                $crate::call_options::SetOptions::merge(self.options_mut(), options);
                self
            }
        }
    };
    (impl[$($generic:tt)*] $call:ty, $timeout:literal, without options) => {
        impl<$($generic)*> $call {
            #[doc = $timeout]
            /// The error is then [`DeadlineExceeded`](crate::ErrorKind::DeadlineExceeded), or
            /// [`Undecided`](crate::ErrorKind::Undecided) if a write may have happened. Default: that of the client.
            pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
                $crate::call_options::SetOptions::set_timeout(self.options_mut(), timeout);
                self
            }

            /// Leaves these regions out, instead of those that the client leaves out. An empty list leaves none out. If no
            /// region remains that takes the operation, the first one is used all the same; unknown names change nothing.
            pub fn excluded_regions(
                mut self,
                regions: impl IntoIterator<Item = impl Into<$crate::Region>>,
            ) -> Self {
                $crate::call_options::SetOptions::set_excluded_regions(self.options_mut(), regions);
                self
            }

            /// Switches hedging on or off (`true`, `false`), or on with a threshold: a `Duration`, a
            /// [`HedgingThreshold`](crate::HedgingThreshold) or [`HedgingOptions`](crate::HedgingOptions).
            pub fn hedging(mut self, hedging: impl Into<$crate::HedgingOptions>) -> Self {
                $crate::call_options::SetOptions::set_hedging(self.options_mut(), hedging.into());
                self
            }

            /// Adds a header to the requests, in place of an earlier one of its name. A header that cannot be sent, or
            /// that the client sets itself, is an error that says what to use instead.
            pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
                $crate::call_options::SetOptions::set_header(self.options_mut(), name, value.into());
                self
            }

            /// Sets the priority: when requests exceed the throughput, those of low priority are throttled first.
            pub fn priority(mut self, priority: $crate::Priority) -> Self {
                $crate::call_options::SetOptions::set_priority(self.options_mut(), priority);
                self
            }

            /// Charges the requests to a throughput bucket of the container, a number from 1 to 5.
            pub fn throughput_bucket(mut self, bucket: u8) -> Self {
                $crate::call_options::SetOptions::set_throughput_bucket(self.options_mut(), bucket);
                self
            }
        }
    };
}

pub(crate) use call_options;

#[cfg(test)]
mod tests {
    use driver::options::{HedgingThreshold, RetryOptions};

    use super::*;

    #[test]
    fn later_options_win_and_earlier_ones_stay() {
        let second = Duration::from_secs(1);
        let mut options = OperationOptions::new();
        options.set_timeout(second);
        options.set_header("x-a", "1".to_owned());
        options.set_priority(Priority::Low);
        options.set_hedging(Duration::from_millis(200).into());
        let newer = OperationOptions::new()
            .with_timeouts(TimeoutOptions::new().with_attempt(second / 2))
            .with_headers(HeaderOptions::new().with_header("X-B", "2").with_throughput_bucket(4))
            .with_retry(RetryOptions::new());
        options.merge(newer);
        options.set_hedging(false.into());
        options.set_excluded_regions(["West US"]);
        let timeouts = TimeoutOptions::new().with_end_to_end(second).with_attempt(second / 2);
        let threshold = HedgingThreshold::Static(Duration::from_millis(200));
        let expected = OperationOptions::new()
            .with_timeouts(timeouts)
            .with_headers(
                HeaderOptions::new()
                    .with_header("x-a", "1")
                    .with_header("x-b", "2")
                    .with_priority(Priority::Low)
                    .with_throughput_bucket(4),
            )
            .with_hedging(HedgingOptions::new().with_enabled(false).with_threshold(threshold))
            .with_regions(RegionOptions::new().with_excluded(["West US"]));
        assert_eq!(options, expected);
        options.set_timeout(2 * second);
        assert_eq!(options.timeouts.end_to_end, Some(2 * second), "the last one wins");
    }
}
