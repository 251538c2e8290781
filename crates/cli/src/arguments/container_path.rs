//! The argument `DATABASE/CONTAINER`, which names a container.

use std::fmt;
use std::str::FromStr;

/// The path of a container on the command line: `DATABASE/CONTAINER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerPath {
    pub(crate) database: String,
    pub(crate) container: String,
}

impl FromStr for ContainerPath {
    type Err = String;

    fn from_str(text: &str) -> Result<ContainerPath, String> {
        match text.split_once('/') {
            Some((database, container))
                if !database.is_empty() && !container.is_empty() && !container.contains('/') =>
            {
                Ok(ContainerPath { database: database.to_owned(), container: container.to_owned() })
            }
            _ => Err(format!("expected DATABASE/CONTAINER, like shop/items, found '{text}'")),
        }
    }
}

impl fmt::Display for ContainerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.database, self.container)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_named_with_its_database() {
        let path: ContainerPath = "shop/my items".parse().unwrap();
        assert_eq!((path.database.as_str(), path.container.as_str()), ("shop", "my items"));
        for text in ["", "shop", "/items", "shop/", "a/b/c"] {
            assert!(text.parse::<ContainerPath>().unwrap_err().contains("shop/items"), "{text}");
        }
    }
}
