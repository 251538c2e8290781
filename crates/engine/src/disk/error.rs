//! Errors of the data directory, in terms of what the person who runs it can do next.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a data directory cannot be opened. Nothing in it was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the directory open.
    #[error("{} is in use by {}", path.display(), holder_text(*holder))]
    InUse {
        /// The path of the directory.
        path: PathBuf,
        /// The process that has it open, where that is known.
        holder: Option<u32>,
    },
    /// The directory was written in another version of the format.
    #[error(
        "{} has data of format {found}, this program reads format {expected}", path.display()
    )]
    OtherVersion {
        /// The path of the directory.
        path: PathBuf,
        /// The version found there.
        found: String,
        /// The version this program writes.
        expected: u32,
    },
    /// The directory is not empty, and not a data directory.
    #[error("{} is not empty and not a data directory of perihelion ({example} is there)", path.display())]
    NotDataDirectory {
        /// The path of the directory.
        path: PathBuf,
        /// The name of a file that is there.
        example: String,
    },
    /// An operation of the operating system failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation that was tried.
        action: &'static str,
        /// The file or folder it was tried on.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It holds an account with other write regions, and so with other version chains.
    #[error("{} holds an account {}", path.display(), writers_text(regions, *multi_write))]
    OtherRegions {
        /// The path of the directory.
        path: PathBuf,
        /// The names of its regions, separated by commas.
        regions: String,
        /// Whether all of them write.
        multi_write: bool,
    },
    /// Data that had reached the disk is damaged.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
}

impl OpenError {
    /// Advice on how to solve the problem.
    pub fn advice(&self) -> &'static str {
        match self {
            OpenError::InUse { .. } => "stop that process, or choose another directory with --data-dir",
            OpenError::OtherVersion { .. } => {
                "use the version of peri that wrote it, or choose another directory with --data-dir"
            }
            OpenError::NotDataDirectory { .. } => "choose an empty directory, or one that does not exist yet",
            OpenError::Io { source, .. } => match source.kind() {
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

    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> OpenError {
        let path = path.into();
        move |source| OpenError::Io { action, path, source }
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, detail: impl ToString) -> OpenError {
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

/// Why a write was not persisted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DiskError {
    /// The disk is full. Nothing was applied; the next write is tried again.
    #[error(
        "The write was not stored: the disk of the data directory is full. Make room there and try again; \
         reads go on."
    )]
    Full,
    /// The write failed. Nothing was applied; the next write is tried again.
    #[error("The write was not stored: the data directory cannot be written ({0}). Reads go on.")]
    Failed(String),
    /// An earlier failure left it unknown what is on the disk, so nothing is written any more.
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
