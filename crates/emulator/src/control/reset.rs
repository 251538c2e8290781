//! `/reset`: deletes all databases of the account.

use http::Method;
use serde_json::json;

use super::request::EmptyBody;
use super::routes::Route;
use super::{Control, ControlError, ControlRequest, ControlResult};
use engine::catalog::CatalogError;

pub(super) const ROUTES: &[Route] = &[Route {
    method: Method::POST,
    path: "/reset",
    about: "delete every database; snapshots, rules, regions and the clock stay",
    handle: reset,
}];

/// Deletes the databases that exist now; one that is created meanwhile stays.
fn reset(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    let catalog = &control.account.catalog;
    let names: Vec<String> =
        catalog.snapshot().databases_after(None).map(|database| database.id.to_string()).collect();
    let mut deleted = Vec::new();
    for name in names {
        match catalog.delete_database(&name, |_| Ok::<_, CatalogError>(())) {
            Ok(_) => deleted.push(name),
            Err(CatalogError::NotPersisted(error)) => {
                return Err(ControlError::unavailable(error.to_string()));
            }
            // Somebody else deleted it first.
            Err(
                CatalogError::NotFound
                | CatalogError::OwnerNotFound
                | CatalogError::AlreadyExists
                | CatalogError::UnknownEncryptionKeys(_),
            ) => {}
        }
    }
    super::json(&json!({ "deleted": deleted }))
}
