//! `peri status`: shows the regions and containers of the account.

use serde_json::Value;

use super::region;
use crate::arguments::Status;
use crate::control::{ControlPort, list, text};
use crate::exit::CommandError;
use crate::output::Table;

/// Shows the regions and containers of the account.
pub(crate) fn run(status: &Status) -> Result<(), CommandError> {
    let port = ControlPort::of(&status.control)?;
    let response = port.get("/topology")?;
    port.show(&response, overview);
    Ok(())
}

fn overview(topology: &Value) -> String {
    let multi_write = if topology["multiWrite"] == true { ", writes in all regions" } else { "" };
    let consistency = text(&topology["consistency"]);
    let regions = region::table(&topology["regions"]);
    let endpoint = text(&topology["endpoint"]);
    let account = format!("account     {}", endpoint.trim_end_matches('/'));
    format!(
        "{account}\nconsistency {consistency}{multi_write}\n\n{regions}\n\n{}",
        containers(&topology["databases"])
    )
}

fn containers(databases: &Value) -> String {
    let mut table = Table::new(&["CONTAINER", "KEY", "PARTITIONS", "ITEMS", "BYTES"]);
    let mut empty = true;
    for database in list(databases) {
        for container in list(&database["containers"]) {
            empty = false;
            table.row(vec![
                format!("{}/{}", text(&database["id"]), text(&container["id"])),
                list(&container["partitionKey"]).iter().map(text).collect::<Vec<_>>().join(" "),
                list(&container["partitions"]).len().to_string(),
                text(&container["items"]),
                text(&container["bytes"]),
            ]);
        }
    }
    if empty { "no containers".to_owned() } else { table.to_string() }
}
