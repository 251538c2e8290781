//! When the container is searched for work of other processes.

use std::time::Duration;

use crate::clock::{self, Millis};

/// The time of the next poll. Polls become rarer while they find nothing.
#[derive(Debug)]
pub(crate) struct PollSchedule {
    shortest: Millis,
    longest: Millis,
    interval: Millis,
    next: Millis,
}

impl PollSchedule {
    pub(crate) fn new(shortest: Duration, longest: Duration) -> PollSchedule {
        let shortest = clock::millis(shortest);
        PollSchedule { shortest, longest: clock::millis(longest), interval: shortest, next: 0.0 }
    }

    /// When the next poll is due.
    pub(crate) fn next(&self) -> Millis {
        self.next
    }

    /// Notes a poll and whether it found anything.
    pub(crate) fn polled(&mut self, found: bool, now: Millis) {
        self.interval = if found { self.shortest } else { (self.interval * 2.0).min(self.longest) };
        self.next = if found { now } else { now + self.interval };
    }

    /// Notes that there is work, so more may follow soon.
    pub(crate) fn active(&mut self, now: Millis) {
        self.interval = self.shortest;
        self.next = self.next.min(now + self.shortest);
    }

    /// Makes the next poll due now.
    pub(crate) fn hurry(&mut self, now: Millis) {
        self.next = self.next.min(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_become_rarer_until_there_is_work_again() {
        let mut polls = PollSchedule::new(Duration::from_millis(250), Duration::from_secs(5));
        let mut times = Vec::new();
        let mut now = 0.0;
        for _ in 0..7 {
            polls.polled(false, now);
            times.push(polls.next() - now);
            now = polls.next();
        }
        assert_eq!(times, [500.0, 1000.0, 2000.0, 4000.0, 5000.0, 5000.0, 5000.0]);
        polls.polled(true, now);
        assert_eq!(polls.next(), now);
        polls.polled(false, now);
        polls.active(now + 10.0);
        assert_eq!(polls.next(), now + 260.0);
    }
}
