//! A streamed execution returns the rows of the reference implementation, however an index is used.

use perihelion_sql::ast::{Direction, print_query};
use perihelion_sql::value::total_order;
use perihelion_sql::{
    InputDemand, InputOrder, QueryContext, QueryExecution, QuerySchema, SqlError, Statement, Value,
    run_reference,
};
use proptest::prelude::*;

use crate::documents::documents;
use crate::index::Index;
use crate::queries::{QueryParts, element_query, query, simple_query};

fn prepare(text: &str) -> Statement {
    Statement::prepare(text, &[], &QuerySchema::default()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run<'d>(
    statement: &Statement,
    documents: impl Iterator<Item = &'d Value>,
    order: InputOrder,
) -> Result<Vec<Value>, SqlError> {
    let mut run = QueryExecution::new(statement, QueryContext::default(), order);
    let mut rows = Vec::new();
    for document in documents {
        let demand = run.push(document)?;
        let ready = run.drain();
        assert!(
            ready.is_empty() || statement.is_streaming(order),
            "a blocking run must not hand out rows early"
        );
        rows.extend(ready);
        if demand == InputDemand::Enough {
            break;
        }
    }
    rows.extend(run.finish()?);
    Ok(rows)
}

fn reference(statement: &Statement, documents: &[Value]) -> Vec<Value> {
    run_reference(statement, documents, QueryContext::default()).expect("generated queries do not fail")
}

/// Rows as text, so that the order of properties counts as well.
fn row_texts(rows: &[Value]) -> Vec<String> {
    rows.iter().map(ToString::to_string).collect()
}

fn check_filter(parts: &QueryParts, documents: &[Value]) -> Result<(), TestCaseError> {
    let statement = prepare(&parts.text());
    let accepted_rows = prepare(&parts.accepted_rows());
    let access = statement.access_path();
    let found = Index::new(documents).find(&access.filter);
    for (at, document) in documents.iter().enumerate() {
        prop_assert_eq!(found.contains(&at), access.filter.accepts(document), "{} on {}", access, document);
        let accepted = !reference(&accepted_rows, std::slice::from_ref(document)).is_empty();
        if accepted {
            prop_assert!(found.contains(&at), "{access} loses {document} of {}", parts.text());
        }
        if access.exact {
            prop_assert_eq!(found.contains(&at), accepted, "{} on {} of {}", access, document, parts.text());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn an_execution_equals_the_reference(parts in query(), documents in documents()) {
        let text = parts.text();
        let statement = prepare(&text);
        let expected = row_texts(&reference(&statement, &documents));
        let streamed = run(&statement, documents.iter(), InputOrder::Any).expect("the reference run succeeded");
        prop_assert_eq!(row_texts(&streamed), expected, "{}", text);
    }

    #[test]
    fn a_filter_accepts_every_matching_document_and_an_exact_one_no_other(
        parts in prop_oneof![query(), simple_query()],
        documents in documents(),
    ) {
        check_filter(&parts, &documents)?;
    }

    #[test]
    fn filters_on_array_elements_accept_every_matching_document(parts in element_query(), documents in documents()) {
        check_filter(&parts, &documents)?;
    }

    #[test]
    fn documents_that_a_filter_rejects_do_not_change_the_rows(parts in query(), documents in documents()) {
        let statement = prepare(&parts.text());
        let found = Index::new(&documents).find(&statement.access_path().filter);
        let accepted = found.iter().map(|at| &documents[*at]);
        let streamed = run(&statement, accepted, InputOrder::Any).expect("a run over fewer documents succeeds");
        prop_assert_eq!(row_texts(&streamed), row_texts(&reference(&statement, &documents)), "{}", parts.text());
    }

    #[test]
    fn documents_in_query_order_give_the_same_rows_while_streaming(parts in query(), documents in documents()) {
        let statement = prepare(&parts.text());
        let access = statement.access_path();
        if access.order.is_empty() || !access.ordering_only_paths {
            return Ok(());
        }
        let mut ordered = documents.clone();
        ordered.sort_by(|left, right| {
            let keys = access.order.iter().map(|(path, direction)| {
                let key = |document: &Value| path.0.iter().fold(document.clone(), |value, step| match step {
                    perihelion_sql::access_path::DocStep::Key(name) => value.member(name).clone(),
                    perihelion_sql::access_path::DocStep::Element => panic!("an order has one value per document"),
                });
                let order = total_order(&key(left), &key(right));
                if *direction == Direction::Descending { order.reverse() } else { order }
            });
            keys.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        let streamed = run(&statement, ordered.iter(), InputOrder::AlreadyOrdered).expect("the same documents");
        prop_assert_eq!(row_texts(&streamed), row_texts(&reference(&statement, &documents)), "{}", parts.text());
    }

    #[test]
    fn the_canonical_form_of_a_query_returns_the_same_rows(parts in query(), documents in documents()) {
        let statement = prepare(&parts.text());
        let printed = print_query(statement.query());
        let again = prepare(&printed);
        prop_assert_eq!(again.query(), statement.query(), "{}", printed);
        prop_assert_eq!(row_texts(&reference(&again, &documents)), row_texts(&reference(&statement, &documents)), "{}", printed);
    }
}
