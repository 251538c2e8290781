//! The actions of a single-write simulation, and how often each is drawn.

use crate::failure::Failure;
use crate::fault_rules::RequestDelay;
use crate::operation::WriteKind;
use crate::operator::OperatorAction;
use crate::run::Simulation;
use crate::seeded_random::SeededRandom;
use crate::single_write::SingleWriteSimulation;

/// The action of one step.
#[derive(Clone, Copy, Debug)]
enum Action {
    Write(WriteKind),
    Batch,
    ReadInSession,
    ReadAlone,
    Query,
    QueryAsOf,
    BeginQuery,
    ReadQuery,
    BeginFeed,
    ReadFeed,
    Operate(OperatorAction),
    FailOver,
    ToggleSplitting,
    SaveSnapshot,
    RestoreSnapshot,
    AddFault,
    Restart,
}

/// The actions with their relative frequencies.
const ACTIONS: &[(usize, Action)] = &[
    (10, Action::Write(WriteKind::Create)),
    (22, Action::Write(WriteKind::Upsert)),
    (8, Action::Write(WriteKind::Replace)),
    (8, Action::Write(WriteKind::Patch)),
    (5, Action::Write(WriteKind::Delete)),
    (8, Action::Batch),
    (24, Action::ReadInSession),
    (10, Action::ReadAlone),
    (8, Action::Query),
    (2, Action::QueryAsOf),
    (2, Action::BeginQuery),
    (8, Action::ReadQuery),
    (2, Action::BeginFeed),
    (12, Action::ReadFeed),
    (14, Action::Operate(OperatorAction::AdvanceClock)),
    (2, Action::Operate(OperatorAction::ChangeLag)),
    (3, Action::Operate(OperatorAction::Pause)),
    (4, Action::Operate(OperatorAction::Resume)),
    (3, Action::FailOver),
    (4, Action::Operate(OperatorAction::Split)),
    (3, Action::Operate(OperatorAction::Merge)),
    (2, Action::ToggleSplitting),
    (2, Action::SaveSnapshot),
    (1, Action::RestoreSnapshot),
    (4, Action::AddFault),
    (3, Action::Restart),
];

impl Simulation for SingleWriteSimulation {
    async fn create(rng: &mut SeededRandom) -> SingleWriteSimulation {
        SingleWriteSimulation::new(rng).await
    }

    /// Carries out an action drawn from `rng`.
    async fn step(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        match rng.weighted(ACTIONS) {
            Action::Write(write) => self.write(write, rng).await?,
            Action::Batch => self.write_batch(rng).await?,
            Action::ReadInSession => self.read_in_session(rng).await?,
            Action::ReadAlone => self.read_alone(rng).await?,
            Action::Query => self.query(rng).await?,
            Action::QueryAsOf => self.query_as_of(rng).await?,
            Action::BeginQuery => self.begin_query(rng).await?,
            Action::ReadQuery => self.read_query(rng).await?,
            Action::BeginFeed => self.begin_feed(rng).await?,
            Action::ReadFeed => self.read_feed(rng).await?,
            Action::FailOver => self.fail_over(rng),
            Action::ToggleSplitting => self.toggle_splitting(rng),
            Action::SaveSnapshot => self.save_snapshot(rng),
            Action::RestoreSnapshot => self.restore_snapshot(rng).await?,
            Action::Operate(action) => self.run_operator_action(action, rng).await?,
            Action::AddFault => self.add_fault_rule(RequestDelay::Allowed, rng),
            Action::Restart => self.end_and_begin(rng).await?,
        }
        Ok(())
    }

    async fn check_final_state(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        self.check_everything(rng).await
    }

    fn log(&mut self) -> &mut Vec<String> {
        &mut self.fixture.log
    }
}

impl SingleWriteSimulation {
    /// Ends all faults and pauses, and checks every region in every session.
    async fn check_everything(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        self.clear_faults();
        if self.splitting.is_some() {
            self.toggle_splitting(rng);
        }
        for at in 0..self.regions.len() {
            self.resume_region(at);
        }
        self.wait(std::time::Duration::from_secs(5));
        self.query_everything(rng).await?;
        self.read_everything_in_sessions().await?;
        let region = self.random_region(rng);
        self.drain_feeds(region).await?;
        self.drain_queries().await
    }
}
