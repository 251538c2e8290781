//! Stored procedures, triggers and user-defined functions: JavaScript that the service runs beside the data.
//!
//! The three kinds of definitions share their operations ([`Scripts`]). A stored procedure is executed in one logical
//! partition; triggers run with the writes that name them ([`WriteItem::pre_trigger`](crate::WriteItem::pre_trigger)),
//! functions in the queries that call them (`udf.name(…)`).

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;

use driver::operation::{Operation, OperationKind, Scope, Target};
use driver::{Error, ErrorKind};
use futures::future::BoxFuture;
use percent_encoding::percent_decode_str;
use protocol::headers as names;
use protocol::resource_path::ResourceType;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::call_options::call_options;
use crate::container::ContainerClient;
use crate::list::List;
use crate::response::Response;
use crate::serialize::to_body;
use crate::{OperationOptions, PartitionKey, Result};

/// A stored procedure: a JavaScript function that runs as one transaction in a logical partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredProcedure {
    /// The id of the procedure, unique in its container.
    pub id: String,
    /// The source text: one JavaScript function.
    pub body: String,
}

/// A user-defined function, which queries call as `udf.id(…)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UserDefinedFunction {
    /// The id of the function, unique in its container.
    pub id: String,
    /// The source text: one JavaScript function.
    pub body: String,
}

/// A trigger, which runs in the transaction of a write that names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trigger {
    /// The id of the trigger, unique in its container.
    pub id: String,
    /// The source text: one JavaScript function.
    pub body: String,
    /// Whether the trigger runs before or after the write.
    pub trigger_type: TriggerType,
    /// The operations that may name the trigger.
    pub trigger_operation: TriggerOperation,
}

/// Whether a trigger runs before or after the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TriggerType {
    /// Before the write: the trigger may change or reject the item.
    #[serde(alias = "pre")]
    Pre,
    /// After the write, in its transaction: the trigger may change the response or undo the write.
    #[serde(alias = "post")]
    Post,
}

/// The operations that may name a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TriggerOperation {
    /// All writes of items.
    #[serde(alias = "all")]
    All,
    /// Only creates of items.
    #[serde(alias = "create")]
    Create,
    /// Only updates of items.
    #[serde(alias = "update")]
    Update,
    /// Only deletes of items.
    #[serde(alias = "delete")]
    Delete,
    /// Only replaces of items.
    #[serde(alias = "replace")]
    Replace,
    /// Only upserts of items.
    #[serde(alias = "upsert")]
    Upsert,
}

impl StoredProcedure {
    /// A procedure with this source text.
    pub fn new(id: impl Into<String>, body: impl Into<String>) -> StoredProcedure {
        StoredProcedure { id: id.into(), body: body.into() }
    }
}

impl UserDefinedFunction {
    /// A function with this source text.
    pub fn new(id: impl Into<String>, body: impl Into<String>) -> UserDefinedFunction {
        UserDefinedFunction { id: id.into(), body: body.into() }
    }
}

impl Trigger {
    /// A trigger with this source text, for all operations or for those of one kind.
    pub fn new(
        id: impl Into<String>,
        body: impl Into<String>,
        trigger_type: TriggerType,
        trigger_operation: TriggerOperation,
    ) -> Trigger {
        Trigger { id: id.into(), body: body.into(), trigger_type, trigger_operation }
    }
}

/// The definition of a script: [`StoredProcedure`], [`Trigger`] or [`UserDefinedFunction`].
pub trait Script: Serialize + DeserializeOwned + sealed::Definition {}

impl Script for StoredProcedure {}
impl Script for Trigger {}
impl Script for UserDefinedFunction {}

mod sealed {
    use protocol::resource_path::ResourceType;

    /// What the operations need to know of a definition.
    pub trait Definition {
        /// The type of the resource on the wire.
        const RESOURCE: ResourceType;

        /// The id of the definition.
        fn id(&self) -> &str;
    }

    macro_rules! definition {
        ($kind:ident) => {
            impl Definition for super::$kind {
                const RESOURCE: ResourceType = ResourceType::$kind;

                fn id(&self) -> &str {
                    &self.id
                }
            }
        };
    }
    definition!(StoredProcedure);
    definition!(Trigger);
    definition!(UserDefinedFunction);
}

impl ContainerClient {
    /// The stored procedures of the container, to create, read, list, replace and delete them.
    ///
    /// ```no_run
    /// # use perihelion::{ContainerClient, Result, scripts::StoredProcedure};
    /// # async fn run(orders: ContainerClient) -> Result<()> {
    /// let body = "function (total) { getContext().getResponse().setBody(total * 2); }";
    /// orders.stored_procedures().create(&StoredProcedure::new("double", body)).await?;
    /// let doubled = orders.execute_stored_procedure::<f64>("ada", "double", &[21.0]).await?;
    /// assert_eq!(*doubled.value(), 42.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stored_procedures(&self) -> Scripts<StoredProcedure> {
        Scripts::new(self)
    }

    /// The triggers of the container, to create, read, list, replace and delete them.
    pub fn triggers(&self) -> Scripts<Trigger> {
        Scripts::new(self)
    }

    /// The user-defined functions of the container, to create, read, list, replace and delete them.
    pub fn user_defined_functions(&self) -> Scripts<UserDefinedFunction> {
        Scripts::new(self)
    }

    /// Executes a stored procedure in the logical partition of `key`. The parameters are an array, a tuple or `()`; the
    /// response is what the procedure sets as its body, `""` if it sets none.
    ///
    /// An error that the procedure throws is a [`BadRequest`](crate::ErrorKind::BadRequest) whose
    /// [sub-status](crate::Error::sub_status) is the `number` of the error. A procedure whose response is lost is not
    /// executed again: the error is [`Undecided`](crate::ErrorKind::Undecided).
    pub fn execute_stored_procedure<R: DeserializeOwned>(
        &self,
        key: impl Into<PartitionKey>,
        id: &str,
        parameters: &(impl Serialize + ?Sized),
    ) -> ExecuteStoredProcedure<R> {
        let target = Target::container(self.name()).entry(ResourceType::StoredProcedure, id);
        let operation = parameters_body(parameters).map(|body| {
            Operation::new(OperationKind::Execute, target).with_scope(Scope::Key(key.into())).with_body(body)
        });
        ExecuteStoredProcedure(Call::new(self.driver(), operation, Response::read))
    }
}

fn parameters_body(parameters: &(impl Serialize + ?Sized)) -> Result<bytes::Bytes> {
    let body = to_body(parameters)?;
    match &body[..] {
        b"null" => Ok(bytes::Bytes::from_static(b"[]")),
        [b'[', ..] => Ok(body),
        _ => {
            let message = "the parameters of a stored procedure are an array: pass a slice or a tuple";
            Err(Error::new(ErrorKind::BadRequest, message))
        }
    }
}

/// The execution of a stored procedure, which is sent when it is awaited.
#[derive(Debug)]
#[must_use = "nothing is sent before it is awaited"]
pub struct ExecuteStoredProcedure<R>(Call<Response<R>>);

call_options!(
    impl[R] ExecuteStoredProcedure<R>,
    "Sets how long the execution may take, with every attempt and wait."
);

impl<R> ExecuteStoredProcedure<R> {
    /// Collects what the procedure writes with `console.log`; [`Response::script_log`] returns it.
    pub fn script_logging(self) -> ExecuteStoredProcedure<R> {
        let logged = |operation: Operation| operation.with_header(names::SCRIPT_ENABLE_LOGGING, "true");
        ExecuteStoredProcedure(self.0.map_operation(logged))
    }

    /// Declares the procedure idempotent: it may be executed twice, and is sent again if its response is lost.
    pub fn repeatable(self) -> ExecuteStoredProcedure<R> {
        ExecuteStoredProcedure(self.0.map_operation(Operation::repeatable))
    }

    /// Uses this session token instead of the client's own.
    pub fn session_token(self, token: &str) -> ExecuteStoredProcedure<R> {
        ExecuteStoredProcedure(self.0.session_token(token))
    }

    fn options_mut(&mut self) -> &mut OperationOptions {
        self.0.options_mut()
    }
}

impl<R: Send + 'static> IntoFuture for ExecuteStoredProcedure<R> {
    type Output = Result<Response<R>>;
    type IntoFuture = BoxFuture<'static, Result<Response<R>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.0.into_future()
    }
}

impl<T> Response<T> {
    /// What the script wrote with `console.log`, if [logging](ExecuteStoredProcedure::script_logging) was asked for.
    pub fn script_log(&self) -> Option<String> {
        let text = self.raw().headers().get(names::SCRIPT_LOG_RESULTS)?;
        Some(percent_decode_str(text).decode_utf8_lossy().into_owned())
    }
}

/// The definitions of one kind in a container. Cheap to clone.
pub struct Scripts<D> {
    container: ContainerClient,
    definition: PhantomData<fn() -> D>,
}

impl<D> Clone for Scripts<D> {
    fn clone(&self) -> Scripts<D> {
        Scripts { container: self.container.clone(), definition: PhantomData }
    }
}

impl<D> fmt::Debug for Scripts<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts").field("container", &self.container).finish_non_exhaustive()
    }
}

impl<D: Script> Scripts<D> {
    fn new(container: &ContainerClient) -> Scripts<D> {
        Scripts { container: container.clone(), definition: PhantomData }
    }

    /// Creates a definition; the error is [`Conflict`](crate::ErrorKind::Conflict) if one of its kind has its id. The
    /// service checks the syntax of the source text when it runs.
    pub fn create(&self, definition: &D) -> Call<Response<D>> {
        let feed = Target::container(self.container.name()).feed(D::RESOURCE);
        let operation = to_body(definition);
        let operation = operation.map(|body| Operation::new(OperationKind::Create, feed).with_body(body));
        Call::new(self.container.driver(), operation, Response::read)
    }

    /// Replaces the definition with its id.
    pub fn replace(&self, definition: &D) -> Call<Response<D>> {
        let target = self.target(definition.id());
        let operation = to_body(definition);
        let operation = operation.map(|body| Operation::new(OperationKind::Replace, target).with_body(body));
        Call::new(self.container.driver(), operation, Response::read)
    }

    /// Reads one definition by its id.
    pub fn read(&self, id: &str) -> Call<Response<D>> {
        let operation = Operation::new(OperationKind::Read, self.target(id));
        Call::new(self.container.driver(), Ok(operation), Response::read)
    }

    /// Deletes one definition by its id.
    pub fn delete(&self, id: &str) -> Call<Response<()>> {
        let operation = Operation::new(OperationKind::Delete, self.target(id));
        Call::new(self.container.driver(), Ok(operation), Response::without_body)
    }

    /// Lists the definitions of the kind.
    pub fn list(&self) -> List<D> {
        let feed = Target::container(self.container.name()).feed(D::RESOURCE);
        List::new(self.container.driver(), feed, D::RESOURCE.feed_property())
    }

    fn target(&self, id: &str) -> Target {
        Target::container(self.container.name()).entry(D::RESOURCE, id)
    }
}
