//! `peri query`: runs a query and prints its rows, as a table on a terminal and as lines of JSON elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::num::NonZeroU32;

use perihelion::{PartitionKey, PartitionKeyComponent};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::account;
use crate::arguments::Query;
use crate::control::text;
use crate::exit::CommandError;
use crate::output::{self, Table};

/// The page size of the query.
const PAGE_ITEMS: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");
/// The heading of rows that are no objects.
const VALUE_COLUMN: &str = "VALUE";

/// Runs the query to its end.
pub(crate) fn run(query: &Query) -> Result<(), CommandError> {
    let client = account::client(&query.account.connection_string())?;
    let container = account::container(&client, &query.container);
    let mut wanted = perihelion::Query::new(query.text.as_str());
    for (name, value) in &query.parameters {
        wanted = wanted.with_parameter(name, value);
    }
    let mut items = container.query_items::<Box<RawValue>>(wanted).page_size(PAGE_ITEMS);
    if !query.partition_key.is_empty() {
        let components = query.partition_key.iter().map(PartitionKeyComponent::from).collect::<Vec<_>>();
        items = items.partition_key(PartitionKey::from(components));
    }
    let as_table = !query.json && std::io::stdout().is_terminal();
    let totals = super::runtime()?.block_on(async {
        let failed = |error: perihelion::Error| account::command_error(&error);
        let mut pages = items.pages().await.map_err(failed)?;
        let (mut rows, mut totals) = (Vec::new(), Totals::default());
        while let Some(page) = pages.next_page().await.map_err(failed)? {
            totals.rows += page.items.len() as u64;
            totals.charge += page.charge;
            match as_table {
                true => rows.extend(page.items),
                false if print(&page.items) => {}
                // The reader of stdout has what it wanted.
                false => break,
            }
        }
        if as_table && !rows.is_empty() {
            output::data(&table(&rows).to_string());
        }
        Ok::<_, CommandError>(totals)
    })?;
    output::message(&format!("{}, {:.2} RU", output::items(totals.rows), totals.charge));
    Ok(())
}

#[derive(Debug, Default)]
struct Totals {
    rows: u64,
    charge: f64,
}

/// Prints rows as lines of JSON. Returns false if nobody reads them any more.
fn print(rows: &[Box<RawValue>]) -> bool {
    if std::io::stdout().is_terminal() {
        // A terminal would obey some of what is in them.
        rows.iter().for_each(|row| output::json_text(row.get()));
        return true;
    }
    let mut stdout = std::io::stdout().lock();
    rows.iter().try_for_each(|row| writeln!(stdout, "{}", row.get())).and_then(|()| stdout.flush()).is_ok()
}

/// A table with a column for each property, in the order in which they first appear.
fn table(rows: &[Box<RawValue>]) -> Table {
    let rows: Vec<Value> =
        rows.iter().map(|row| serde_json::from_str(row.get()).unwrap_or_default()).collect();
    let mut columns: Vec<&str> = Vec::new();
    for row in &rows {
        match row.as_object() {
            Some(object) => object.keys().for_each(|name| {
                if !columns.contains(&name.as_str()) {
                    columns.push(name);
                }
            }),
            None if columns.contains(&VALUE_COLUMN) => {}
            None => columns.push(VALUE_COLUMN),
        }
    }
    let mut table = Table::new(&columns);
    for row in &rows {
        let cell = |name: &&str| match row.as_object() {
            Some(object) => object.get(*name).map(shown).unwrap_or_default(),
            None if *name == VALUE_COLUMN => shown(row),
            None => String::new(),
        };
        table.row(columns.iter().map(cell).collect());
    }
    table
}

/// A value as a cell: text without its quotes, everything else as JSON.
fn shown(value: &Value) -> String {
    if value.is_null() { "null".to_owned() } else { text(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_column_for_every_property() {
        let rows = [r#"{"id":"1","n":5}"#, r#"{"id":"2","deep":{"a":[1]},"n":null}"#]
            .map(|text| RawValue::from_string(text.to_owned()).expect("JSON"));
        assert_eq!(table(&rows).to_string(), "id  n     deep\n 1  5\n 2  null  {\"a\":[1]}");
    }

    #[test]
    fn rows_that_are_no_objects_have_one_column() {
        let rows = ["1", "\"a\"", "[2]"].map(|text| RawValue::from_string(text.to_owned()).expect("JSON"));
        assert_eq!(table(&rows).to_string(), "VALUE\n1\na\n[2]");
    }
}
