//! Runs every test case of `tests/cases/*.sqltest`.
//!
//! A case file is plain text. Lines that start with `#` are comments. A case starts with `=== its
//! name`; its sections start with `---`:
//!
//! ```text
//! === a missing property is undefined
//! --- items                   one JSON document per line; optional
//! {"id": "1", "a": 1}
//! --- parameters              one JSON object; optional
//! {"@p": 1}
//! --- schema                  one JSON object; optional; see `Settings`
//! {"computedProperties": [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}]}
//! --- now 16000000000000000   ticks of 100 ns since 1970; optional
//! --- query
//! SELECT VALUE c.b FROM c
//! --- rows                    one JSON value per line, in order; `--- rows in any order` if it has none
//! --- error SC1001            instead of rows; lines below it must occur in the message
//! --- access                  besides rows: what an index may do for the query, one line
//! check: /a = 1; order: /b ASC
//! --- values                  instead of a query: `expression => value` per line, on the first item.
//! c.a + 1 => 2                A value is JSON, `undefined` or `error SC2050`; `~=` compares numbers
//! PI() ~= 3.141592653589793   to within 1e-9 of their size.
//! ```
//!
//! `--- items`, `--- parameters`, `--- schema` and `--- now` before the first case apply to every case of
//! the file that does not have its own. Every query is executed in three ways: streamed, by the reference
//! implementation, and after being printed in canonical form and parsed again.

use std::fmt::Write as _;
use std::path::Path;

use perihelion_sql as sql;
use serde_json::Value as Json;
use sql::{
    ComputedProperty, InputOrder, QueryContext, QueryExecution, QuerySchema, Statement, Value, ast,
    run_reference, value,
};

#[test]
fn every_case_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of case files exists")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sqltest"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no case files in {}", folder.display());
    let mut failures = String::new();
    let mut count = 0;
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a readable case file");
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for case in read_file(&file, &text) {
            count += 1;
            if let Err(reason) = case.check() {
                let _ = writeln!(
                    failures,
                    "{file}:{} {}\n  {}",
                    case.line,
                    case.name,
                    reason.replace('\n', "\n  ")
                );
            }
        }
    }
    assert!(failures.is_empty(), "of {count} cases these failed:\n{failures}");
}

/// The settings of a file or a case.
#[derive(Clone, Default)]
struct Settings {
    items: Vec<Value>,
    parameters: Vec<(smol_str::SmolStr, Value)>,
    schema: QuerySchema,
    now: Option<i64>,
}

struct Case {
    name: String,
    line: usize,
    settings: Settings,
    query: String,
    expected: Option<Expected>,
    access: Option<String>,
    values: Vec<(usize, String)>,
}

enum Expected {
    Rows { rows: Vec<Value>, ordered: bool },
    Error { code: String, parts: Vec<String> },
}

/// The time 2 January 2024, 03:04:05.6789012.
const NOW: i64 = 17_041_646_456_789_012;

impl Case {
    fn check(&self) -> Result<(), String> {
        if self.query.is_empty() && self.values.is_empty() {
            return Err("the case has neither a query nor values".into());
        }
        if !self.query.is_empty() && (self.expected.is_some() || self.access.is_none()) {
            self.check_query()?;
        }
        if let Some(expected) = &self.access {
            let Settings { parameters, schema, .. } = &self.settings;
            let statement =
                Statement::prepare(&self.query, parameters, schema).map_err(|error| error.to_string())?;
            let found = statement.access_path().to_string();
            if found != *expected {
                return Err(format!("expected access {expected}\n   found access {found}"));
            }
        }
        let failed: Vec<String> = self
            .values
            .iter()
            .filter_map(|(line, text)| self.check_value(text).err().map(|why| format!("line {line}: {why}")))
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
    }

    fn check_query(&self) -> Result<(), String> {
        let outcome = self.run(&self.query);
        match (&self.expected, outcome) {
            (None, _) => Err("the case expects neither rows nor an error".into()),
            (Some(Expected::Rows { rows, ordered }), Ok(found)) => compare_rows(rows, &found, *ordered),
            (Some(Expected::Rows { .. }), Err(error)) => Err(format!("fails: {error}")),
            (Some(Expected::Error { .. }), Ok(found)) => Err(format!("accepted, with rows {}", show(&found))),
            (Some(Expected::Error { code, parts }), Err(error)) => {
                let fits = error.starts_with(code.as_str())
                    && parts.iter().all(|part| error.contains(part.as_str()));
                if fits { Ok(()) } else { Err(format!("fails with another error: {error}")) }
            }
        }
    }

    /// Checks one line of a values section.
    fn check_value(&self, text: &str) -> Result<(), String> {
        let (approximate, (expression, expected)) = match (text.split_once(" => "), text.split_once(" ~= ")) {
            (Some(parts), _) => (false, parts),
            (None, Some(parts)) => (true, parts),
            (None, None) => return Err(format!("no ' => ' or ' ~= ' in: {text}")),
        };
        let expected = expected.trim();
        let outcome = self.run(&format!("SELECT VALUE ({expression}) FROM c"));
        if let Some(code) = expected.strip_prefix("error ") {
            return match outcome {
                Err(error) if error.starts_with(code) => Ok(()),
                Err(error) => Err(format!("{expression}: fails with another error: {error}")),
                Ok(found) => Err(format!("{expression}: accepted, with {}", show(&found))),
            };
        }
        let found = outcome.map_err(|error| format!("{expression}: fails: {error}"))?;
        let found = found.into_iter().next().unwrap_or(Value::Undefined);
        let expected = if expected == "undefined" { Value::Undefined } else { json(expected)? };
        let equal = match (approximate, expected.as_f64(), found.as_f64()) {
            (true, Some(expected), Some(found)) => (expected - found).abs() <= expected.abs().max(1.0) * 1e-9,
            _ => expected == found,
        };
        if equal {
            Ok(())
        } else {
            Err(format!("{expression}: expected {}, found {}", text_of(&expected), text_of(&found)))
        }
    }

    /// Executes a query in the three ways, and fails unless all agree.
    fn run(&self, query: &str) -> Result<Vec<Value>, String> {
        let Settings { items, parameters, schema, now } = &self.settings;
        let nothing = [json("{}")?];
        let items: &[Value] = if items.is_empty() { &nothing } else { items };
        let context = QueryContext { now: now.unwrap_or(NOW), random_seed: 1, ..QueryContext::default() };
        let statement = Statement::prepare(query, parameters, schema).map_err(|error| error.to_string())?;
        let streamed = run(&statement, items, context);
        let reference = run_reference(&statement, items, context).map_err(|error| error.to_string());
        if streamed != reference {
            return Err(format!("streamed run gives {streamed:?} but reference run gives {reference:?}"));
        }
        let printed = ast::print_query(statement.query());
        let again = Statement::prepare(&printed, parameters, schema)
            .map_err(|error| format!("its canonical form is fails: {error}\n{printed}"))?;
        if again.query() != statement.query() {
            return Err(format!("its canonical form means something else: {printed}"));
        }
        // Values that JSON cannot represent are gone once rows are written.
        streamed?.iter().map(|row| json(&row.to_string())).collect()
    }
}

fn run(statement: &Statement, items: &[Value], context: QueryContext) -> Result<Vec<Value>, String> {
    let mut run = QueryExecution::new(statement, context, InputOrder::Any);
    let mut rows = Vec::new();
    for item in items {
        let demand = run.push(item).map_err(|error| error.to_string())?;
        rows.extend(run.drain());
        if demand == sql::InputDemand::Enough {
            break;
        }
    }
    rows.extend(run.finish().map_err(|error| error.to_string())?);
    Ok(rows)
}

fn compare_rows(expected: &[Value], found: &[Value], ordered: bool) -> Result<(), String> {
    let sorted = |rows: &[Value]| {
        let mut rows = rows.to_vec();
        if !ordered {
            rows.sort_by(value::total_order);
        }
        rows
    };
    if sorted(expected) == sorted(found) {
        Ok(())
    } else {
        Err(format!("expected {}\n   found {}", show(expected), show(found)))
    }
}

fn show(rows: &[Value]) -> String {
    rows.iter().map(text_of).collect::<Vec<_>>().join(" ")
}

fn text_of(value: &Value) -> String {
    if value.is_defined() { value.to_string() } else { "undefined".into() }
}

fn json(text: &str) -> Result<Value, String> {
    value::parse(text.as_bytes()).map_err(|error| format!("{error} in {text}"))
}

/// Reads all cases of one file; a file that cannot be read fails the test with its position.
fn read_file(file: &str, text: &str) -> Vec<Case> {
    let mut shared = Settings::default();
    let mut cases: Vec<Case> = Vec::new();
    let mut section: Option<Section> = None;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        if line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("=== ") {
            close(section.take(), &mut cases, &mut shared, file);
            cases.push(Case {
                name: name.trim().to_owned(),
                line: number,
                settings: shared.clone(),
                query: String::new(),
                expected: None,
                access: None,
                values: Vec::new(),
            });
        } else if let Some(head) = line.strip_prefix("--- ") {
            close(section.take(), &mut cases, &mut shared, file);
            section = Some(Section { head: head.trim().to_owned(), line: number, lines: Vec::new() });
        } else if let Some(section) = &mut section {
            section.lines.push((number, line.to_owned()));
        } else {
            assert!(line.trim().is_empty(), "{file}:{number}: text outside of a section: {line}");
        }
    }
    close(section, &mut cases, &mut shared, file);
    cases
}

struct Section {
    head: String,
    line: usize,
    lines: Vec<(usize, String)>,
}

fn close(section: Option<Section>, cases: &mut [Case], shared: &mut Settings, file: &str) {
    let Some(section) = section else { return };
    let position = format!("{file}:{}", section.line);
    let lines = || section.lines.iter().filter(|(_, line)| !line.trim().is_empty());
    let text = section.lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n");
    let values =
        || lines().map(|(_, line)| json(line).unwrap_or_else(|why| panic!("{position}: {why}"))).collect();
    let (keyword, rest) = section.head.split_once(' ').unwrap_or((&section.head, ""));
    let settings = match cases.last_mut() {
        Some(case) => &mut case.settings,
        None => &mut *shared,
    };
    match keyword {
        "items" => settings.items = values(),
        "now" => settings.now = Some(rest.parse().unwrap_or_else(|_| panic!("{position}: ticks expected"))),
        "parameters" => {
            let parameters = json(&text).unwrap_or_else(|why| panic!("{position}: {why}"));
            let members = parameters.as_object().unwrap_or_else(|| panic!("{position}: an object expected"));
            settings.parameters = members.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        "schema" => {
            settings.schema = read_schema(&text).unwrap_or_else(|| panic!("{position}: not a schema: {text}"))
        }
        "query" | "rows" | "error" | "values" | "access" => {
            let case = cases.last_mut().unwrap_or_else(|| panic!("{position}: no case has started"));
            match keyword {
                "query" => case.query = text.trim().to_owned(),
                "access" => case.access = Some(text.trim().to_owned()),
                "rows" => {
                    case.expected = Some(Expected::Rows { rows: values(), ordered: rest != "in any order" })
                }
                "error" => {
                    let parts = lines().map(|(_, line)| line.trim().to_owned()).collect();
                    case.expected = Some(Expected::Error { code: rest.to_owned(), parts });
                }
                _ => case.values = lines().map(|(at, line)| (*at, line.trim().to_owned())).collect(),
            }
        }
        other => panic!("{position}: unknown section '{other}'"),
    }
}

/// `{"computedProperties": [{"name", "query"}], "geometry": "Geography" | "Geometry",
/// "vectors": {"/path": "cosine"}, "language": "en-US", "languages": {"/path": "fr-FR"}}`, every member
/// optional.
fn read_schema(text: &str) -> Option<QuerySchema> {
    let given: Json = serde_json::from_str(text).ok()?;
    let mut schema = QuerySchema::default();
    for (name, member) in given.as_object()? {
        match name.as_str() {
            "computedProperties" => {
                for property in member.as_array()? {
                    let (name, query) =
                        (property["name"].as_str()?.into(), property["query"].as_str()?.to_owned());
                    schema.computed_properties.push(ComputedProperty { name, query });
                }
            }
            "geometry" => {
                schema.geometry = match member.as_str()? {
                    "Geography" => sql::GeometryKind::Geography,
                    "Geometry" => sql::GeometryKind::Geometry,
                    _ => return None,
                };
            }
            "vectors" => {
                for (path, distance) in member.as_object()? {
                    let distance = sql::DistanceFunction::from_name(distance.as_str()?)?;
                    schema.vector_policies.push(sql::VectorPolicy { path: path.clone(), distance });
                }
            }
            "language" => schema.full_text_language = sql::FullTextLanguage::from_tag(member.as_str()?)?,
            "languages" => {
                for (path, tag) in member.as_object()? {
                    let language = sql::FullTextLanguage::from_tag(tag.as_str()?)?;
                    schema.full_text_paths.push(sql::FullTextPathLanguage { path: path.clone(), language });
                }
            }
            _ => return None,
        }
    }
    Some(schema)
}
