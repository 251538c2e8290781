//! Relative links on the pages of the repository lead to files, folders and headings that exist.

use std::fs;
use std::path::{Path, PathBuf};

use crate::markdown;
use crate::workspace::{find, relative, root};

const PAGES: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

#[test]
fn links_lead_somewhere() {
    let mut pages: Vec<PathBuf> = PAGES.iter().map(|page| root().join(page)).collect();
    for folder in ["docs", "crates", "clients", "bench"] {
        find(&root().join(folder), "md", &mut pages);
    }
    let mut broken = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        for (line, target) in markdown::links(&text) {
            if let Err(reason) = follow(&page, &text, &target) {
                broken.push(format!("{}:{line}: ({target}) {reason}", relative(&page)));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

/// Follows the link to `target` that stands on `page`, whose text is `text`. Other sites are not asked.
fn follow(page: &Path, text: &str, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = page.parent().unwrap_or(page).join(path);
    if !path.is_empty() && !file.exists() {
        return Err("there is no such file".into());
    }
    if anchor.is_empty() || (!path.is_empty() && file.extension().is_none_or(|of| of != "md")) {
        return Ok(());
    }
    let anchors = if path.is_empty() {
        markdown::anchors(text)
    } else {
        markdown::anchors(&fs::read_to_string(&file).map_err(|error| error.to_string())?)
    };
    if anchors.iter().any(|one| one == anchor) { Ok(()) } else { Err("there is no such heading".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_to_its_file_and_heading() {
        let page = root().join("docs/page.md");
        assert_eq!(follow(&page, "", "https://example.com/x#y"), Ok(()));
        assert_eq!(follow(&page, "", "../README.md"), Ok(()));
        assert_eq!(follow(&page, "", "missing.md"), Err("there is no such file".into()));
        assert_eq!(follow(&page, "## Here it is", "#here-it-is"), Ok(()));
        assert_eq!(follow(&page, "## Here it is", "#there"), Err("there is no such heading".into()));
        assert_eq!(follow(&page, "", "../CONTRIBUTING.md#habits"), Ok(()));
    }
}
