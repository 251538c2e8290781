//! The documents of an instance that an operator looks at.

use std::collections::BTreeMap;

use perihelion::Query;
use serde::Deserialize;
use serde_json::Value;

use super::waiting::{QuarantinedItem, UndeliveredMessage, UnreleasedTurn, WaitingActivity, WaitingMessage};
use super::{Operator, OperatorError};
use crate::clock;
use crate::documents::{InstanceDocument, SessionDocument, check_version};
use crate::error::Result;
use crate::ids;
use crate::store::Versioned;

/// How many documents of a type are looked at. An operator reads the first few; the rest is counted.
const SHOWN_MAX: usize = 100;

/// What the partition of an instance holds beside its history.
#[derive(Debug, Default)]
pub(super) struct PartitionContents {
    /// The document of the instance; none if there is none or it cannot be read.
    pub(super) instance: Option<InstanceDocument>,
    /// Why the document of the instance cannot be read.
    pub(super) instance_error: Option<String>,
    /// The number of documents by type.
    counts: BTreeMap<String, u64>,
    pub(super) messages: Vec<WaitingMessage>,
    pub(super) activities: Vec<WaitingActivity>,
    pub(super) quarantined: Vec<QuarantinedItem>,
    pub(super) undelivered: Vec<UndeliveredMessage>,
    pub(super) unreleased: Vec<UnreleasedTurn>,
}

impl PartitionContents {
    /// The number of documents of a type.
    pub(super) fn count(&self, document_type: &str) -> u64 {
        self.counts.get(document_type).copied().unwrap_or_default()
    }
}

impl Operator {
    /// Reads what the partition of an instance holds. A partition without documents is an error.
    pub(super) async fn read_partition(&self, instance: &str) -> Result<PartitionContents, OperatorError> {
        ids::check_instance_id(instance)?;
        #[derive(Deserialize)]
        struct OfType {
            #[serde(rename = "type", default)]
            document_type: String,
            documents: u64,
        }
        let counts: Vec<OfType> = self
            .core
            .store
            .values_of_partition(instance, || {
                Query::new("SELECT c.type, COUNT(1) AS documents FROM c GROUP BY c.type")
            })
            .await?;
        let mut contents = PartitionContents {
            counts: counts.into_iter().map(|counts| (counts.document_type, counts.documents)).collect(),
            ..PartitionContents::default()
        };
        // A processed message from another instance stays for a day and says nothing about this one.
        if contents.counts.keys().all(|document_type| document_type == "delivered") {
            return Err(OperatorError::NoInstance { instance: instance.to_owned() });
        }
        let id = ids::instance_document(instance);
        let stored: Option<Versioned<Value>> = self.core.store.read(instance, &id).await?;
        if let Some(stored) = stored {
            match read_instance(stored.document) {
                Ok(document) => contents.instance = Some(document),
                Err(error) => contents.instance_error = Some(error),
            }
        }
        let known = contents.instance.as_ref();
        let messages = self.documents_of(instance, "orch_queue", &contents).await?;
        let mut messages: Vec<WaitingMessage> =
            messages.iter().map(|document| WaitingMessage::of(document, known)).collect();
        messages.sort_by_key(|message| message.visible_at);
        let activities = self.documents_of(instance, "worker_queue", &contents).await?;
        let mut activities: Vec<WaitingActivity> = activities.iter().map(WaitingActivity::of).collect();
        activities.sort_by_key(|activity| (activity.execution_id, activity.activity_id));
        self.add_session_owners(&mut activities).await?;
        let quarantined = self.documents_of(instance, "quarantined", &contents).await?;
        let undelivered = self.documents_of(instance, "outbox_intent", &contents).await?;
        let unreleased = self.documents_of(instance, "release", &contents).await?;
        contents.messages = messages;
        contents.activities = activities;
        contents.quarantined = quarantined.iter().map(QuarantinedItem::of).collect();
        contents.undelivered = undelivered.iter().map(UndeliveredMessage::of).collect();
        contents.unreleased = unreleased.iter().map(UnreleasedTurn::of).collect();
        Ok(contents)
    }

    async fn documents_of(
        &self,
        instance: &str,
        document_type: &str,
        contents: &PartitionContents,
    ) -> Result<Vec<Value>> {
        if contents.count(document_type) == 0 {
            return Ok(Vec::new());
        }
        let order = match document_type {
            "orch_queue" | "worker_queue" => " ORDER BY c.type, c.visibleAt",
            _ => "",
        };
        let text = format!("SELECT TOP {SHOWN_MAX} * FROM c WHERE c.type = @type{order}");
        self.core
            .store
            .values_of_partition(instance, || {
                Query::new(text.as_str()).with_parameter("@type", document_type)
            })
            .await
    }

    /// Says which worker has the session of each activity that has one.
    async fn add_session_owners(&self, activities: &mut [WaitingActivity]) -> Result<()> {
        let mut owners: BTreeMap<String, Option<String>> = BTreeMap::new();
        for activity in activities {
            let Some(session) = activity.session_id.clone() else { continue };
            if !owners.contains_key(&session) {
                let partition = ids::session_partition(&session);
                let stored: Option<Versioned<SessionDocument>> =
                    self.core.store.read(&partition, ids::SESSION_DOCUMENT).await?;
                let now = clock::now();
                let owner = stored.filter(|stored| stored.document.locked_until > now);
                owners.insert(session.clone(), owner.map(|stored| stored.document.owner_id));
            }
            activity.session_owner = owners.get(&session).cloned().flatten();
        }
        Ok(())
    }
}

/// The document of an instance, if this release understands it.
fn read_instance(document: Value) -> Result<InstanceDocument, String> {
    let document: InstanceDocument = serde_json::from_value(document).map_err(|error| error.to_string())?;
    check_version("The document of the instance", document.schema_version)
        .map_err(|error| error.to_string())?;
    Ok(document)
}
