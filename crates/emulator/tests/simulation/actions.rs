//! What may happen next, and how often.

use crate::dice::Dice;
use crate::failure::Failure;
use crate::operation::Write;
use crate::operator::Deed;
use crate::run::Play;
use crate::trouble::Time;
use crate::world::World;

/// One step.
#[derive(Clone, Copy, Debug)]
enum Action {
    Write(Write),
    Batch,
    ReadInSession,
    ReadAlone,
    Query,
    QueryAsOf,
    BeginQuery,
    ReadQuery,
    BeginFeed,
    ReadFeed,
    Operate(Deed),
    FailOver,
    ToggleSplitting,
    SaveSnapshot,
    RestoreSnapshot,
    Trouble,
    Restart,
}

/// How often each happens, in relation to the others.
const ACTIONS: &[(usize, Action)] = &[
    (10, Action::Write(Write::Create)),
    (22, Action::Write(Write::Upsert)),
    (8, Action::Write(Write::Replace)),
    (8, Action::Write(Write::Patch)),
    (5, Action::Write(Write::Delete)),
    (8, Action::Batch),
    (24, Action::ReadInSession),
    (10, Action::ReadAlone),
    (8, Action::Query),
    (2, Action::QueryAsOf),
    (2, Action::BeginQuery),
    (8, Action::ReadQuery),
    (2, Action::BeginFeed),
    (12, Action::ReadFeed),
    (14, Action::Operate(Deed::LetTimePass)),
    (2, Action::Operate(Deed::ChangeLag)),
    (3, Action::Operate(Deed::Pause)),
    (4, Action::Operate(Deed::Resume)),
    (3, Action::FailOver),
    (4, Action::Operate(Deed::Split)),
    (3, Action::Operate(Deed::Merge)),
    (2, Action::ToggleSplitting),
    (2, Action::SaveSnapshot),
    (1, Action::RestoreSnapshot),
    (4, Action::Trouble),
    (3, Action::Restart),
];

impl Play for World {
    async fn begin(dice: &mut Dice) -> World {
        World::new(dice).await
    }

    /// Does what the dice say.
    async fn step(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        match dice.weighted(ACTIONS) {
            Action::Write(write) => self.write(write, dice).await?,
            Action::Batch => self.write_batch(dice).await?,
            Action::ReadInSession => self.read_in_session(dice).await?,
            Action::ReadAlone => self.read_alone(dice).await?,
            Action::Query => self.query(dice).await?,
            Action::QueryAsOf => self.query_as_of(dice).await?,
            Action::BeginQuery => self.begin_query(dice).await?,
            Action::ReadQuery => self.read_query(dice).await?,
            Action::BeginFeed => self.begin_feed(dice).await?,
            Action::ReadFeed => self.read_feed(dice).await?,
            Action::FailOver => self.fail_over(dice),
            Action::ToggleSplitting => self.toggle_splitting(dice),
            Action::SaveSnapshot => self.save_snapshot(dice),
            Action::RestoreSnapshot => self.restore_snapshot(dice).await?,
            Action::Operate(deed) => self.operate_on(deed, dice).await?,
            Action::Trouble => self.make_trouble(Time::MayPass, dice),
            Action::Restart => self.end_and_begin(dice).await?,
        }
        Ok(())
    }

    async fn settle(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        self.ask_for_everything(dice).await
    }

    fn told(&mut self) -> &mut Vec<String> {
        &mut self.stage.told
    }
}

impl World {
    /// Of every region, in every session.
    async fn ask_for_everything(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        self.end_trouble();
        if self.splitting.is_some() {
            self.toggle_splitting(dice);
        }
        for at in 0..self.regions.len() {
            self.resume_region(at);
        }
        self.wait(std::time::Duration::from_secs(5));
        self.query_everything(dice).await?;
        self.read_everything_in_sessions().await?;
        let region = self.region(dice);
        self.drain_feeds(region).await?;
        self.drain_queries().await
    }
}
