//! How long the evaluation of a request may take where it runs.

use engine::query::RunLimit;
use sql::SqlError;

use super::Call;
use crate::response::ServiceError;

/// The longest query that is parsed on a thread that serves connections, in bytes.
const QUICK_TEXT_BYTES: usize = 64 * 1024;

/// A class of evaluations by the work that they may do. A request that needs more is interrupted, and starts
/// again in the next class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvaluationClass {
    /// About a millisecond, on the thread that serves the connection.
    Quick,
    /// Some ten milliseconds, on a thread for evaluations.
    Medium,
    /// As much as one request may do.
    Long,
}

impl EvaluationClass {
    /// The limit of a run of a query.
    pub(crate) fn run_limit(self) -> RunLimit {
        match self {
            EvaluationClass::Quick => RunLimit::new(50_000, 4_000, 2 << 20),
            EvaluationClass::Medium => RunLimit::new(1_000_000, 50_000, 64 << 20),
            EvaluationClass::Long => RunLimit::none(),
        }
    }

    /// The work units of an execution over a few documents.
    pub(crate) fn work_units_max(self) -> Option<u64> {
        match self {
            EvaluationClass::Quick => Some(50_000),
            EvaluationClass::Medium => Some(1_000_000),
            EvaluationClass::Long => None,
        }
    }
}

impl Call<'_> {
    /// Interrupts the request if its query is too long to be parsed here.
    pub(crate) fn check_query_length(&self) -> Result<(), ServiceError> {
        self.interrupt_if(self.body.len() > QUICK_TEXT_BYTES)
    }

    /// Interrupts the request if its evaluation is known to take longer than it may here.
    pub(crate) fn interrupt_if(&self, is_long: bool) -> Result<(), ServiceError> {
        match self.evaluation {
            EvaluationClass::Quick if is_long => Err(ServiceError::interrupted()),
            _ => Ok(()),
        }
    }

    /// The error of an evaluation, or the interruption of one that may go on in another class.
    pub(crate) fn evaluation_error(&self, error: SqlError) -> ServiceError {
        match self.evaluation {
            EvaluationClass::Quick | EvaluationClass::Medium if error.is_too_much_work() => {
                ServiceError::interrupted()
            }
            _ => error.into(),
        }
    }
}
