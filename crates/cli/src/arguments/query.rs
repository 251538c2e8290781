//! The command line of `peri query`.

use serde_json::Value;

use super::{AccountOptions, ContainerPath};

const EXAMPLES: &str = "\
Examples:
  peri query shop/items \"SELECT * FROM c WHERE c.price < 10 ORDER BY c.price\"
  peri query shop/items \"SELECT * FROM c WHERE c.name = @name\" --parameter name=Assam
  peri query shop/items \"SELECT VALUE COUNT(1) FROM c\" --partition-key tea
  peri query shop/items \"SELECT * FROM c\" --json | jq .name

On a terminal, rows are shown as a table; otherwise, and with --json, as one line of JSON each. The number of rows and
their request charge are on stderr. A value is read as JSON if it is JSON, and as text otherwise.";

/// Run a query and print its rows
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Query {
    /// The container, like shop/items
    #[arg(value_name = "DATABASE/CONTAINER")]
    pub(crate) container: ContainerPath,

    /// The query in SQL, with parameters as @name
    #[arg(value_name = "SQL")]
    pub(crate) text: String,

    /// Parameter of the query; may be repeated
    #[arg(long = "parameter", short, value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) parameters: Vec<(String, Value)>,

    /// Partition key to search in; repeated for each level of a hierarchical one
    #[arg(long, short = 'k', value_name = "VALUE", value_parser = value)]
    pub(crate) partition_key: Vec<Value>,

    /// Print rows as JSON on a terminal as well
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) account: AccountOptions,
}

/// A value as JSON, or as text if it is not JSON.
#[expect(clippy::unnecessary_wraps, reason = "the form of a parser of clap")]
fn value(text: &str) -> Result<Value, String> {
    Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into()))
}

/// The name, with the `@` that it has in the query, and the value.
fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, text) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let name = name.strip_prefix('@').unwrap_or(name);
    if name.is_empty() {
        return Err("expected NAME=VALUE".to_owned());
    }
    Ok((format!("@{name}"), value(text)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_json_or_text() {
        for (text, name, expected) in [
            ("n=1", "@n", json!(1)),
            ("@n=[1,2]", "@n", json!([1, 2])),
            ("name=Assam", "@name", json!("Assam")),
            ("text=\"1\"", "@text", json!("1")),
            ("empty=", "@empty", json!("")),
            ("a=b=c", "@a", json!("b=c")),
        ] {
            assert_eq!(parameter(text), Ok((name.to_owned(), expected)), "{text}");
        }
        assert!(parameter("name").is_err() && parameter("=1").is_err() && parameter("@=1").is_err());
    }
}
