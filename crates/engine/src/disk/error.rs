//! What can go wrong with a data directory, in terms of what the person who runs it can do next.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a data directory cannot be opened. Nothing in it was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it open.
    #[error("{} is in use by {}", path.display(), holder_text(*holder))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process that has it open, where that is known.
        holder: Option<u32>,
    },
    /// Made by another version of the format.
    #[error(
        "{} has data of format {found}, this program reads format {expected}", path.display()
    )]
    OtherVersion {
        /// The directory.
        path: PathBuf,
        /// The version found there.
        found: String,
        /// The version this program writes.
        expected: u32,
    },
    /// Something else lives there.
    #[error("{} is not empty and not a data directory of perihelion ({example} is there)", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// One of the things found there.
        example: String,
    },
    /// The operating system said no.
    #[error("cannot {action} {}: {source}", path.display())]
    Refused {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It holds an account in which other regions write, so that it has other sequences of commits.
    #[error("{} holds an account {}", path.display(), writers_text(regions, *multi_write))]
    OtherRegions {
        /// The directory.
        path: PathBuf,
        /// The names of its regions, separated by commas.
        regions: String,
        /// Whether all of them write.
        multi_write: bool,
    },
    /// Data that had been safe is damaged.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
}

impl OpenError {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            OpenError::InUse { .. } => "stop that process, or choose another directory with --data-dir",
            OpenError::OtherVersion { .. } => {
                "use the version of peri that wrote it, or choose another directory with --data-dir"
            }
            OpenError::NotOurs { .. } => "choose an empty directory, or one that does not exist yet",
            OpenError::Refused { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "give this user permission to write there, or choose another directory with --data-dir"
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "make room on that disk, or choose a directory on another one with --data-dir"
                }
                io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                    "choose a directory, not a file, with --data-dir"
                }
                _ => "check the path and the disk, or choose another directory with --data-dir",
            },
            OpenError::OtherRegions { multi_write: true, .. } => {
                "start it with --multi-write and the same --regions, or choose another directory with --data-dir"
            }
            OpenError::OtherRegions { .. } => {
                "leave out --multi-write, or choose another directory with --data-dir"
            }
            OpenError::Damaged { .. } => {
                "put back a copy of the directory, or move it away and start with an empty one; nothing in it \
                 was changed"
            }
        }
    }

    pub(super) fn refused(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> OpenError {
        let path = path.into();
        move |source| OpenError::Refused { action, path, source }
    }

    pub(super) fn damaged(path: impl Into<PathBuf>, detail: impl ToString) -> OpenError {
        OpenError::Damaged { path: path.into(), detail: detail.to_string() }
    }
}

fn writers_text(regions: &str, multi_write: bool) -> String {
    match multi_write {
        true => format!("whose regions all write: {regions}"),
        false => "in which one region writes".to_owned(),
    }
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
}

/// Why a write was not kept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DiskError {
    /// The disk has no room. Nothing was applied; the next write is tried again.
    #[error(
        "The write was not stored: the disk of the data directory is full. Make room there and try again; \
         reads go on."
    )]
    Full,
    /// The write failed. Nothing was applied; the next write is tried again.
    #[error("The write was not stored: the data directory cannot be written ({0}). Reads go on.")]
    Failed(String),
    /// An earlier failure left it unclear what is on the disk, so nothing is written any more.
    #[error(
        "The write was not stored: the data directory failed earlier ({0}) and takes no more writes. Look \
         after the disk, then restart; reads go on."
    )]
    Broken(String),
    /// One commit of more bytes than a record can have.
    #[error("The write was not stored: {0} bytes in one commit are too many. Divide it.")]
    TooLarge(usize),
}

impl DiskError {
    pub(super) fn of(error: &io::Error) -> DiskError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                DiskError::Full
            }
            _ => DiskError::Failed(error.to_string()),
        }
    }
}
