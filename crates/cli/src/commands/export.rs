//! `peri export`: pages of a query into a file that appears when it is complete.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use perihelion::ContainerClient;
use serde_json::value::RawValue;

use crate::account;
use crate::arguments::Export;
use crate::exit::Failure;
use crate::fixtures::{Format, Writer, without_system_properties};
use crate::output::{self, Progress};

/// Items asked for at a time.
const PAGE_ITEMS: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

/// Writes every item the query finds.
pub(crate) fn run(export: &Export) -> Result<(), Failure> {
    let to_stdout = export.file == Path::new("-");
    let format = match export.format.or_else(|| Format::of(&export.file)) {
        Some(format) => format,
        None if to_stdout => Format::Ndjson,
        None => {
            return Err(Failure::usage(format!("'{}' does not say its format", export.file.display()))
                .hint("name it with --format json, ndjson or csv"));
        }
    };
    let client = account::client(&export.account.text())?;
    let container = account::container(&client, &export.container);
    let runtime = super::runtime()?;
    if runtime.block_on(account::properties(&container))?.is_none() {
        return Err(Failure::refused(&format!("there is no container {}", export.container)));
    }
    if to_stdout {
        let out = BufWriter::new(std::io::stdout());
        return match runtime.block_on(write_all(export, format, out, &container)) {
            // A reader that closed the pipe has seen what it wanted.
            Err(Stopped::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            Err(stopped) => Err(stopped.into_failure("stdout")),
            Ok(_) => Ok(()),
        };
    }
    let name = export.file.display().to_string();
    let cannot = |error| Stopped::Write(error).into_failure(&name);
    let draft = Draft::create(&export.file).map_err(cannot)?;
    let out = BufWriter::new(&draft.file);
    let count = runtime.block_on(write_all(export, format, out, &container));
    let count = count.map_err(|stopped| stopped.into_failure(&name))?;
    draft.publish(&export.file).map_err(cannot)?;
    output::message(&format!("exported {} of {} to {name}", output::items(count), export.container));
    Ok(())
}

/// Why it ended early.
enum Stopped {
    Write(std::io::Error),
    Fetch(Failure),
}

impl Stopped {
    fn into_failure(self, name: &str) -> Failure {
        match self {
            Stopped::Write(error) => Failure::other(format!("{name} cannot be written: {error}")),
            Stopped::Fetch(failure) => failure,
        }
    }
}

async fn write_all(
    export: &Export,
    format: Format,
    out: impl Write,
    container: &ContainerClient,
) -> Result<u64, Stopped> {
    let mut writer = Writer::new(format, out, export.columns.clone());
    let mut progress = Progress::new("exported", None);
    let fetch = |error: perihelion::Error| Stopped::Fetch(account::failure(&error));
    let query = container.query_items::<Box<RawValue>>(export.query.as_str()).page_size(PAGE_ITEMS);
    let mut pages = query.pages().await.map_err(fetch)?;
    while let Some(page) = pages.next_page().await.map_err(fetch)? {
        for item in &page.items {
            let kept = match export.system_properties {
                true => item.get().into(),
                false => without_system_properties(item.get()),
            };
            writer.add(&kept).map_err(Stopped::Write)?;
            progress.step(None);
        }
    }
    let left_out = writer.finish().map_err(Stopped::Write)?;
    if !left_out.is_empty() && export.columns.is_empty() {
        let names: Vec<String> = left_out.into_iter().collect();
        progress.line(&format!(
            "warning: later items have properties without a column: {}; name the columns with --columns",
            names.join(", ")
        ));
    }
    Ok(progress.items())
}

/// A file beside the one that is wanted. Dropping it takes it away.
struct Draft {
    file: File,
    path: PathBuf,
    published: bool,
}

impl Draft {
    fn create(target: &Path) -> std::io::Result<Draft> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let path = target.with_file_name(name);
        Ok(Draft { file: File::create(&path)?, path, published: false })
    }

    fn publish(mut self, target: &Path) -> std::io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, target)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
