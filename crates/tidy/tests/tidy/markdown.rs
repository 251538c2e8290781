//! Reads the parts of a Markdown page that the tests check: headings, links, table rows and the first Rust example.

use std::collections::BTreeMap;

/// A line of a page with its number, outside of fenced code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((at + 1, line))
    })
}

/// The names that headings of the page can be linked to by.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| anchor(title))
    });
    let number = |anchor: String| {
        let before = seen.entry(anchor.clone()).or_default();
        *before += 1;
        if *before == 1 { anchor } else { format!("{anchor}-{}", *before - 1) }
    };
    headings.map(number).collect()
}

/// The anchor that GitHub gives a heading: lower case, hyphens for spaces, no punctuation.
fn anchor(title: &str) -> String {
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The targets of the links on the page, each with its line: `[text](target)` and `[name]: target`.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let mut rest = line.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let end = rest.find([')', ' ']).unwrap_or(rest.len());
            found.push((number, rest[..end].trim_matches(['<', '>']).to_owned()));
        }
        if line.starts_with('[')
            && let Some((_, target)) = line.split_once("]: ")
        {
            found.push((number, target.trim().to_owned()));
        }
    }
    found
}

/// The line with the content of `inline code` left out.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The cells of every table row on the page, with its line; the line of dashes below a heading is left out.
pub(crate) fn table_rows(text: &str) -> Vec<(usize, Vec<String>)> {
    let rows = prose(text).filter_map(|(number, line)| {
        let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some((number, split_cells(inner)))
    });
    rows.filter(|(_, cells)| {
        !cells.iter().all(|cell| !cell.is_empty() && cell.trim_matches(['-', ':']).is_empty())
    })
    .collect()
}

/// Splits a row at its bars, except those that are escaped or inside of inline code.
fn split_cells(row: &str) -> Vec<String> {
    let (mut cells, mut code, mut escaped) = (vec![String::new()], false, false);
    for c in row.chars() {
        let bar = c == '|' && !code && !escaped;
        code ^= c == '`';
        escaped = c == '\\' && !escaped;
        match cells.last_mut() {
            Some(cell) if !bar => cell.push(c),
            _ => cells.push(String::new()),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// What stands in backquotes: `a`, `b`.
pub(crate) fn code_spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect()
}

/// The first example of the page that is Rust.
pub(crate) fn first_rust_block(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("```rust\n")?;
    let (block, _) = rest.split_once("```")?;
    Some(block.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# One read, `peri`: from A–Z\n```\n# no heading\n```\n## Twice\n## Twice\n#hashtag\n";
        assert_eq!(anchors(text), ["one-read-peri-from-az", "twice", "twice-1"]);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text =
            "[a](b.md#c) and ![i](d.png \"t\"), `[x](y)`\n```\n[no](no)\n```\n[r]: e.md\n[`f`](g.rs)\n";
        let found = links(text);
        let found = found.iter().map(|(line, target)| (*line, target.as_str())).collect::<Vec<_>>();
        assert_eq!(found, [(1, "b.md#c"), (1, "d.png"), (5, "e.md"), (6, "g.rs")]);
    }

    #[test]
    fn rows_are_split_into_cells() {
        let text = "| a | b |\n|---|:-:|\n| `x|y` | z \\| w |\ntext | text\n";
        let rows = table_rows(text).into_iter().map(|(_, cells)| cells).collect::<Vec<_>>();
        assert_eq!(rows, [["a", "b"], ["`x|y`", "z \\| w"]]);
    }

    #[test]
    fn code_spans_are_what_stands_in_backquotes() {
        assert_eq!(code_spans("`a`, `B::c`: text"), ["a", "B::c"]);
        assert_eq!(first_rust_block("x\n```rust\na();\n```\n").as_deref(), Some("a();\n"));
    }
}
