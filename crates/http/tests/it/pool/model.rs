//! The pool against a model of it: a list per host, without locks, guards or counters, that is written to
//! be obviously right.

use proptest::prelude::*;

use super::*;

const HOSTS: [&str; 3] = ["one", "two", "three"];
const LIMIT: usize = 3;
const IDLE_SECONDS: u64 = 10;

#[derive(Clone, Debug)]
enum Step {
    /// Time goes by.
    Wait { seconds: u64 },
    /// A connection is asked for, and opened if none waits.
    Take { host: usize },
    /// One in use is given back.
    Return { lease: usize },
    /// One in use is dropped in the middle.
    Abandon { lease: usize },
    /// A connection from elsewhere is put in line.
    Checkin { host: usize },
    /// The peer closes a connection, wherever it is.
    HangUp { connection: usize },
    /// All that are stale are closed.
    Cleanup,
    /// All that wait are closed.
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
        2 => any::<usize>().prop_map(|connection| Step::HangUp { connection }),
        1 => Just(Step::Cleanup),
        1 => Just(Step::Clear),
    ]
}

/// One connection, as the model knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Waiting {
    number: u32,
    since: u64,
}

#[derive(Default)]
struct Model {
    idle: [Vec<Waiting>; HOSTS.len()],
    expected: [HostMetrics; HOSTS.len()],
    hung_up: Vec<u32>,
    now: u64,
}

impl Model {
    /// Waiting connections that are of use, newest last; the others are taken out and counted.
    fn sweep(&mut self, host: usize) {
        let expired = |waiting: &Waiting| self.now - waiting.since > IDLE_SECONDS;
        let closed = |waiting: &Waiting| self.hung_up.contains(&waiting.number);
        let list = &self.idle[host];
        self.expected[host].expirations += list.iter().filter(|it| expired(it)).count() as u64;
        self.expected[host].discards += list.iter().filter(|it| !expired(it) && closed(it)).count() as u64;
        let left = list.iter().filter(|it| !expired(it) && !closed(it)).copied().collect();
        self.idle[host] = left;
    }

    /// The number of the connection that must be handed out.
    fn take(&mut self, host: usize) -> Option<u32> {
        let expired = self.idle[host].iter().filter(|it| self.now - it.since > IDLE_SECONDS).count();
        self.idle[host].drain(..expired);
        self.expected[host].expirations += expired as u64;
        while let Some(newest) = self.idle[host].pop() {
            if !self.hung_up.contains(&newest.number) {
                self.expected[host].hits += 1;
                return Some(newest.number);
            }
            self.expected[host].discards += 1;
        }
        self.expected[host].misses += 1;
        None
    }

    fn put(&mut self, host: usize, number: u32) {
        if self.hung_up.contains(&number) {
            self.expected[host].discards += 1;
            return;
        }
        if self.idle[host].len() == LIMIT {
            let oldest = self.idle[host].remove(0);
            let expired = self.now - oldest.since > IDLE_SECONDS;
            self.expected[host].expirations += u64::from(expired);
            self.expected[host].evictions += u64::from(!expired);
        }
        self.idle[host].push(Waiting { number, since: self.now });
    }
}

/// The pool and its model, side by side.
struct World {
    time: Time,
    pool: ConnectionPool<Socket>,
    model: Model,
    leases: Vec<(usize, Lease<Socket>)>,
    states: Vec<Arc<State>>,
}

impl World {
    fn new() -> World {
        let config =
            PoolConfig::builder().max_per_host(LIMIT).max_idle_time(Duration::from_secs(IDLE_SECONDS));
        World {
            time: Time::start(),
            pool: ConnectionPool::new(config.build().expect("it makes sense")),
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
                let place = self.pool.host(&authority(HOSTS[host]));
                let found = place.checkout(self.now());
                let expected = self.model.take(host);
                prop_assert_eq!(found.as_ref().map(|lease| lease.number), expected);
                let lease = match found {
                    Some(lease) => lease,
                    None => place.lease(self.open(host), self.now()),
                };
                prop_assert!(lease.is_open() || lease.origin() == Origin::New);
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
                self.pool.checkin(&authority(HOSTS[host]), socket, self.now());
            }
            Step::HangUp { connection } if !self.states.is_empty() => {
                let number = connection % self.states.len();
                self.states[number].hang_up();
                self.model.hung_up.push(u32::try_from(number).expect("tests are short"));
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
            Step::Return { .. } | Step::Abandon { .. } | Step::HangUp { .. } => {}
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
            let found = metrics.host(&authority(name)).copied().unwrap_or_default();
            prop_assert_eq!(found, expected, "{}", name);
            let HostMetrics { opened, active, idle, evictions, expirations, discards, .. } = found;
            prop_assert_eq!(opened, active + idle + evictions + expirations + discards);
            total += found;
        }
        prop_assert_eq!(metrics.total, total);
        // What the model says is gone is closed, and nothing else.
        let open = self.states.iter().filter(|state| !state.is_dropped()).count();
        let kept: usize = self.model.idle.iter().map(Vec::len).sum();
        prop_assert_eq!(open, kept + self.leases.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_pool_does_what_its_model_does(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in &steps {
            world.run(step)?;
        }
    }
}
