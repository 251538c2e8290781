//! The pool against a simple model of it: a list per host, without locks, leases or counters.

use proptest::prelude::*;

use super::*;

const HOSTS: [&str; 3] = ["one", "two", "three"];
const LIMIT: usize = 3;
const IDLE_SECONDS: u64 = 10;

#[derive(Clone, Debug)]
enum Step {
    /// The clock advances by some seconds.
    Wait { seconds: u64 },
    /// A connection is checked out, or opened if none is idle.
    Take { host: usize },
    /// A lease is checked in.
    Return { lease: usize },
    /// A lease is dropped in the middle of a request.
    Abandon { lease: usize },
    /// A new connection is checked in without being used.
    Checkin { host: usize },
    /// The peer closes a connection, idle or in use.
    ClosedByPeer { connection: usize },
    /// All stale connections are closed.
    Cleanup,
    /// All idle connections are closed.
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let host = 0..HOSTS.len();
    prop_oneof![
        3 => (0..=IDLE_SECONDS).prop_map(|seconds| Step::Wait { seconds }),
        8 => host.clone().prop_map(|host| Step::Take { host }),
        8 => any::<usize>().prop_map(|lease| Step::Return { lease }),
        2 => any::<usize>().prop_map(|lease| Step::Abandon { lease }),
        2 => host.prop_map(|host| Step::Checkin { host }),
        2 => any::<usize>().prop_map(|connection| Step::ClosedByPeer { connection }),
        1 => Just(Step::Cleanup),
        1 => Just(Step::Clear),
    ]
}

/// An idle connection of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Idle {
    number: u32,
    since: u64,
}

#[derive(Default)]
struct Model {
    idle: [Vec<Idle>; HOSTS.len()],
    expected: [HostMetrics; HOSTS.len()],
    closed_by_peer: Vec<u32>,
    now: u64,
}

impl Model {
    /// Removes and counts the idle connections that have expired or are closed.
    fn sweep(&mut self, host: usize) {
        let expired = |idle: &Idle| self.now - idle.since > IDLE_SECONDS;
        let closed = |idle: &Idle| self.closed_by_peer.contains(&idle.number);
        let list = &self.idle[host];
        self.expected[host].expirations += list.iter().filter(|it| expired(it)).count() as u64;
        self.expected[host].discards += list.iter().filter(|it| !expired(it) && closed(it)).count() as u64;
        let left = list.iter().filter(|it| !expired(it) && !closed(it)).copied().collect();
        self.idle[host] = left;
    }

    /// Checks out a connection, and returns its number.
    fn take(&mut self, host: usize) -> Option<u32> {
        let expired = self.idle[host].iter().filter(|it| self.now - it.since > IDLE_SECONDS).count();
        self.idle[host].drain(..expired);
        self.expected[host].expirations += expired as u64;
        while let Some(newest) = self.idle[host].pop() {
            if !self.closed_by_peer.contains(&newest.number) {
                self.expected[host].hits += 1;
                return Some(newest.number);
            }
            self.expected[host].discards += 1;
        }
        self.expected[host].misses += 1;
        None
    }

    fn put(&mut self, host: usize, number: u32) {
        if self.closed_by_peer.contains(&number) {
            self.expected[host].discards += 1;
            return;
        }
        if self.idle[host].len() == LIMIT {
            let oldest = self.idle[host].remove(0);
            let expired = self.now - oldest.since > IDLE_SECONDS;
            self.expected[host].expirations += u64::from(expired);
            self.expected[host].evictions += u64::from(!expired);
        }
        self.idle[host].push(Idle { number, since: self.now });
    }
}

/// The pool and its model, which take the same steps.
struct Fixture {
    time: Time,
    pool: ConnectionPool<Socket>,
    model: Model,
    leases: Vec<(usize, Lease<Socket>)>,
    states: Vec<Arc<State>>,
}

impl Fixture {
    fn new() -> Fixture {
        let config =
            PoolConfig::builder().max_per_host(LIMIT).max_idle_time(Duration::from_secs(IDLE_SECONDS));
        Fixture {
            time: Time::start(),
            pool: ConnectionPool::new(config.build().expect("it is valid")),
            model: Model::default(),
            leases: Vec::new(),
            states: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        self.time.at(self.model.now)
    }

    fn open(&mut self, host: usize) -> Socket {
        let socket = Socket::new(u32::try_from(self.states.len()).expect("tests are short"));
        self.states.push(Arc::clone(&socket.state));
        self.model.expected[host].opened += 1;
        socket
    }

    fn run(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Wait { seconds } => self.model.now += seconds,
            Step::Take { host } => {
                let host_pool = self.pool.host(&origin(HOSTS[host]));
                let found = host_pool.checkout(self.now());
                let expected = self.model.take(host);
                prop_assert_eq!(found.as_ref().map(|lease| lease.number), expected);
                let lease = match found {
                    Some(lease) => lease,
                    None => host_pool.lease(self.open(host), self.now()),
                };
                prop_assert!(lease.is_open() || !lease.is_reused());
                self.leases.push((host, lease));
            }
            Step::Return { lease } | Step::Abandon { lease } if !self.leases.is_empty() => {
                let (host, lease) = self.leases.swap_remove(lease % self.leases.len());
                if matches!(step, Step::Return { .. }) {
                    self.model.put(host, lease.number);
                    lease.checkin(self.now());
                } else {
                    self.model.expected[host].discards += 1;
                    drop(lease);
                }
            }
            Step::Checkin { host } => {
                let socket = self.open(host);
                self.model.put(host, socket.number);
                self.pool.checkin(&origin(HOSTS[host]), socket, self.now());
            }
            Step::ClosedByPeer { connection } if !self.states.is_empty() => {
                let number = connection % self.states.len();
                self.states[number].close_by_peer();
                self.model.closed_by_peer.push(u32::try_from(number).expect("tests are short"));
            }
            Step::Cleanup => {
                let before: usize = self.model.idle.iter().map(Vec::len).sum();
                (0..HOSTS.len()).for_each(|host| self.model.sweep(host));
                let after: usize = self.model.idle.iter().map(Vec::len).sum();
                prop_assert_eq!(self.pool.cleanup_stale(self.now()), before - after);
            }
            Step::Clear => {
                let before: usize = self.model.idle.iter().map(Vec::len).sum();
                for (list, expected) in self.model.idle.iter_mut().zip(&mut self.model.expected) {
                    expected.discards += list.len() as u64;
                    list.clear();
                }
                prop_assert_eq!(self.pool.clear(), before);
            }
            Step::Return { .. } | Step::Abandon { .. } | Step::ClosedByPeer { .. } => {}
        }
        self.compare()
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        let metrics = self.pool.metrics(self.now());
        let mut total = HostMetrics::default();
        for (host, name) in HOSTS.iter().enumerate() {
            let list = &self.model.idle[host];
            prop_assert!(list.len() <= LIMIT);
            let stale = list.iter().filter(|it| self.model.now - it.since > IDLE_SECONDS).count() as u64;
            let mut expected = self.model.expected[host];
            expected.active = self.leases.iter().filter(|(of, _)| *of == host).count() as u64;
            expected.idle = list.len() as u64 - stale;
            expected.expirations += stale;
            let found = metrics.host(&origin(name)).copied().unwrap_or_default();
            prop_assert_eq!(found, expected, "{}", name);
            let HostMetrics { opened, active, idle, evictions, expirations, discards, .. } = found;
            prop_assert_eq!(opened, active + idle + evictions + expirations + discards);
            total += found;
        }
        prop_assert_eq!(metrics.total, total);
        // Exactly the connections that are neither idle nor leased in the model are closed.
        let open = self.states.iter().filter(|state| !state.is_dropped()).count();
        let idle: usize = self.model.idle.iter().map(Vec::len).sum();
        prop_assert_eq!(open, idle + self.leases.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_pool_behaves_like_its_model(steps in prop::collection::vec(step(), 1..80)) {
        let mut fixture = Fixture::new();
        for step in &steps {
            fixture.run(step)?;
        }
    }
}
