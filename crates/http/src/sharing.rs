//! The connections of one host that are shared, and the line of those who wait for a place on one.
//!
//! First come, first served: a place that becomes free goes to whoever has waited longest, and nobody who comes
//! later passes by. Without that, a caller that has just been answered would take its own place again and
//! again, and the others would wait until their time is up.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::connection::http2::{Http2, Place};
use crate::exchange::Reuse;

/// The shared connections of one host.
#[derive(Debug)]
pub(crate) struct Sharing {
    state: Mutex<State>,
    connections_max: usize,
    /// How many wait, for those who give a place back to look at without the lock. Written under the lock,
    /// before the places are looked at; read after a place was given back. One of the two sees the other.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    connections: Vec<Arc<Http2>>,
    line: VecDeque<oneshot::Sender<Turn>>,
    /// One connection is made at a time: it may be all that is needed.
    connecting: bool,
    /// To be dropped once the lock is free: dropping any of it may serve the line again.
    leftovers: Leftovers,
}

#[derive(Debug, Default)]
struct Leftovers {
    /// What was meant for those who went away.
    turns: Vec<Turn>,
    /// Closed connections. Those that still have requests on them live on with these.
    closed: Vec<Arc<Http2>>,
}

/// What comes of asking for a place.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Here is one.
    Place(Place),
    /// There is none, and it is for the one who asked to make a connection.
    Connect(Connecting),
    /// The host turned out not to share: make other plans.
    Elsewhere,
}

/// Either a turn, or a place in the line.
#[derive(Debug)]
pub(crate) enum Asked {
    Now(Turn),
    Later(oneshot::Receiver<Turn>),
}

/// The turn to make a connection. Dropped, for whatever reason, it is the next one's.
#[derive(Debug)]
pub(crate) struct Connecting(Arc<Sharing>);

impl Sharing {
    /// No connections yet, and never more than so many.
    pub(crate) fn new(connections_max: usize) -> Arc<Self> {
        Arc::new(Sharing { state: Mutex::default(), connections_max, waiting: AtomicUsize::new(0) })
    }

    /// A place on a connection, or the next best thing.
    pub(crate) fn ask(self: &Arc<Self>) -> Asked {
        self.locked(|state| {
            if state.line.is_empty()
                && let Some(turn) = self.turn(state)
            {
                return Asked::Now(turn);
            }
            let (tell, told) = oneshot::channel();
            state.line.push_back(tell);
            self.serve_line(state);
            Asked::Later(told)
        })
    }

    /// Adds a connection.
    pub(crate) fn add(self: &Arc<Self>, connection: Arc<Http2>) {
        self.locked(|state| {
            state.connections.push(connection);
            self.serve_line(state);
        });
    }

    /// Gives the line what there is. To be called whenever there may be more.
    pub(crate) fn serve(self: &Arc<Self>) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.locked(|state| self.serve_line(state));
        }
    }

    /// Sends everybody in the line elsewhere.
    pub(crate) fn dismiss(&self) {
        let line = self.locked(|state| {
            self.waiting.store(0, Ordering::SeqCst);
            std::mem::take(&mut state.line)
        });
        for waiting in line {
            // Who went away needs no advice.
            let _ = waiting.send(Turn::Elsewhere);
        }
    }

    /// Closes the connections that nobody uses, and says how many that were.
    pub(crate) fn clear(&self) -> usize {
        let idle: Vec<_> =
            self.locked(|state| state.connections.extract_if(.., |http2| http2.is_idle()).collect());
        idle.len()
    }

    fn serve_line(self: &Arc<Self>, state: &mut State) {
        loop {
            while state.line.front().is_some_and(oneshot::Sender::is_closed) {
                state.line.pop_front();
            }
            self.waiting.store(state.line.len(), Ordering::SeqCst);
            if state.line.is_empty() {
                return;
            }
            let Some(turn) = self.turn(state) else { return };
            if let Some(first) = state.line.pop_front() {
                state.leftovers.turns.extend(first.send(turn).err());
            }
        }
    }

    /// A place, or the turn to make one, if either is to be had.
    fn turn(self: &Arc<Self>, state: &mut State) -> Option<Turn> {
        if let Some(place) = state.connections.iter().find_map(|http2| http2.place(Reuse::Reused)) {
            return Some(Turn::Place(place));
        }
        state.leftovers.closed.extend(state.connections.extract_if(.., |http2| http2.is_closed()));
        if state.connecting || state.connections.len() >= self.connections_max {
            return None;
        }
        state.connecting = true;
        Some(Turn::Connect(Connecting(Arc::clone(self))))
    }

    /// Does something under the lock, and drops what is left over afterwards.
    fn locked<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state);
        let leftovers = std::mem::take(&mut state.leftovers);
        drop(state);
        drop(leftovers);
        result
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.0.locked(|state| {
            state.connecting = false;
            self.0.serve_line(state);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_connect(turn: &Turn) -> bool {
        matches!(turn, Turn::Connect(_))
    }

    fn later(asked: Asked) -> oneshot::Receiver<Turn> {
        match asked {
            Asked::Later(told) => told,
            Asked::Now(turn) => panic!("nobody should have a turn now, but {turn:?}"),
        }
    }

    #[test]
    fn the_first_one_connects_and_the_others_wait_in_line() {
        let sharing = Sharing::new(1);
        let Asked::Now(first) = sharing.ask() else { panic!("the first one has its turn at once") };
        assert!(is_connect(&first));
        let mut second = later(sharing.ask());
        let mut third = later(sharing.ask());
        // It did not succeed, so it is for the next one in line to try.
        drop(first);
        assert!(is_connect(&second.try_recv().expect("its turn has come, and is over as it is dropped")));
        assert!(is_connect(&third.try_recv().expect("its turn has come")));
    }

    #[test]
    fn a_turn_of_somebody_who_went_away_is_the_next_one_s() {
        let sharing = Sharing::new(1);
        let Asked::Now(first) = sharing.ask() else { panic!("the first one has its turn at once") };
        let second = later(sharing.ask());
        let mut third = later(sharing.ask());
        let fourth = later(sharing.ask());
        drop(second);
        drop(first);
        assert!(is_connect(&third.try_recv().expect("its turn has come")));
        // Nobody took notice of the fourth one's turn.
        drop(fourth);
        assert!(matches!(sharing.ask(), Asked::Now(Turn::Connect(_))));
        assert_eq!(sharing.waiting.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn where_nothing_is_shared_the_line_is_sent_elsewhere() {
        let sharing = Sharing::new(1);
        let Asked::Now(first) = sharing.ask() else { panic!("the first one has its turn at once") };
        let mut line: Vec<_> = (0..3).map(|_| later(sharing.ask())).collect();
        sharing.dismiss();
        for waiting in &mut line {
            assert!(matches!(waiting.try_recv(), Ok(Turn::Elsewhere)));
        }
        drop(first);
    }
}
