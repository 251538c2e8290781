//! `peri status`: the account at a glance.

use serde_json::Value;

use super::region;
use crate::arguments::Status;
use crate::control::{ControlPort, list, text};
use crate::exit::Failure;
use crate::output::Table;

/// Shows regions and containers.
pub(crate) fn run(status: &Status) -> Result<(), Failure> {
    let port = ControlPort::of(&status.control)?;
    let answer = port.get("/topology")?;
    port.show(&answer, glance);
    Ok(())
}

fn glance(topology: &Value) -> String {
    let several = if topology["multiWrite"] == true { ", writes everywhere" } else { "" };
    let consistency = text(&topology["consistency"]);
    let regions = region::table(&topology["regions"]);
    format!("consistency {consistency}{several}\n\n{regions}\n\n{}", containers(&topology["databases"]))
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
