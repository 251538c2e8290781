//! `peri export`: writes the pages of a query to a file, which gets its name when it is complete.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use perihelion::ContainerClient;
use serde_json::value::RawValue;

use crate::account;
use crate::arguments::Export;
use crate::exit::CommandError;
use crate::fixtures::{Format, Writer, without_system_properties};
use crate::output::{self, Progress, TerminalWriter};

/// The page size of the query.
const PAGE_ITEMS: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

/// Writes every item that the query finds.
pub(crate) fn run(export: &Export) -> Result<(), CommandError> {
    let to_stdout = export.file == Path::new("-");
    let format = match export.format.or_else(|| Format::of(&export.file)) {
        Some(format) => format,
        None if to_stdout => Format::Ndjson,
        None => {
            return Err(CommandError::usage(format!("'{}' has no known extension", export.file.display()))
                .hint("set the format with --format json, ndjson or csv"));
        }
    };
    let client = account::client(&export.account.connection_string())?;
    let container = account::container(&client, &export.container);
    let runtime = super::runtime()?;
    if runtime.block_on(account::properties(&container))?.is_none() {
        return Err(CommandError::rejected(&format!("there is no container {}", export.container)));
    }
    if to_stdout {
        let out = BufWriter::new(std::io::stdout());
        // A file or another program gets the items as they are; a terminal would obey what is in them.
        let written = match std::io::stdout().is_terminal() {
            true => runtime.block_on(write_all(export, format, TerminalWriter::new(out), &container)),
            false => runtime.block_on(write_all(export, format, out, &container)),
        };
        return match written {
            // A closed pipe is no error: the reader of stdout has ended.
            Err(ExportError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(error.into_command_error("stdout")),
            Ok(_) => Ok(()),
        };
    }
    let name = export.file.display().to_string();
    let cannot = |error| ExportError::Write(error).into_command_error(&name);
    let partial = PartialFile::create(&export.file).map_err(cannot)?;
    let out = BufWriter::new(&partial.file);
    let count = runtime.block_on(write_all(export, format, out, &container));
    let count = count.map_err(|error| error.into_command_error(&name))?;
    partial.publish(&export.file).map_err(cannot)?;
    output::message(&format!("exported {} of {} to {name}", output::items(count), export.container));
    Ok(())
}

/// Why an export failed.
enum ExportError {
    Write(std::io::Error),
    Fetch(CommandError),
}

impl ExportError {
    fn into_command_error(self, name: &str) -> CommandError {
        match self {
            ExportError::Write(error) => CommandError::other(format!("{name} cannot be written: {error}")),
            ExportError::Fetch(error) => error,
        }
    }
}

async fn write_all(
    export: &Export,
    format: Format,
    out: impl Write,
    container: &ContainerClient,
) -> Result<u64, ExportError> {
    let mut writer = Writer::new(format, out, export.columns.clone());
    let mut progress = Progress::new("exported", None);
    let fetch = |error: perihelion::Error| ExportError::Fetch(account::command_error(&error));
    let query = container.query_items::<Box<RawValue>>(export.query.as_str()).page_size(PAGE_ITEMS);
    let mut pages = query.pages().await.map_err(fetch)?;
    while let Some(page) = pages.next_page().await.map_err(fetch)? {
        for item in &page.items {
            let text = match export.system_properties {
                true => item.get().into(),
                false => without_system_properties(item.get()),
            };
            writer.add(&text).map_err(ExportError::Write)?;
            progress.step(None);
        }
    }
    let without_column = writer.finish().map_err(ExportError::Write)?;
    if !without_column.is_empty() && export.columns.is_empty() {
        let names: Vec<String> = without_column.into_iter().collect();
        progress.line(&format!(
            "warning: later items have properties without a column: {}; set the columns with --columns",
            names.join(", ")
        ));
    }
    Ok(progress.items())
}

/// A temporary file beside the target. Dropping it deletes it, unless it was published.
struct PartialFile {
    file: File,
    path: PathBuf,
    published: bool,
}

impl PartialFile {
    fn create(target: &Path) -> std::io::Result<PartialFile> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let path = target.with_file_name(name);
        Ok(PartialFile { file: File::create(&path)?, path, published: false })
    }

    fn publish(mut self, target: &Path) -> std::io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, target)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.published {
            // The export has failed already, so an error here would hide the cause.
            let _not_deleted = std::fs::remove_file(&self.path);
        }
    }
}
