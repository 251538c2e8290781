//! Every example runs, against an account of its own; each twice, since the second run finds what the first left.
//!
//! They are the files of `examples`, so what is read there is what is tested here.

use crate::Lab;

#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/aad.rs"]
mod aad;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/batch.rs"]
mod batch;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/consistency.rs"]
mod consistency;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/databases_and_containers.rs"]
mod databases_and_containers;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/follow_changes.rs"]
mod follow_changes;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/hierarchical_keys.rs"]
mod hierarchical_keys;
#[path = "../../examples/inject_faults.rs"]
mod inject_faults;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/optimistic_update.rs"]
mod optimistic_update;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/patch_item.rs"]
mod patch_item;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/point_read.rs"]
mod point_read;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/query_pages.rs"]
mod query_pages;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/query_stream.rs"]
mod query_stream;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/quickstart.rs"]
mod quickstart;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/throughput.rs"]
mod throughput;
#[path = "../../examples/two_regions.rs"]
mod two_regions;
#[allow(dead_code, reason = "its main, and what it does not need of the shop")]
#[path = "../../examples/write_items.rs"]
mod write_items;

macro_rules! example {
    ($test:ident, $example:ident) => {
        #[tokio::test]
        async fn $test() {
            let lab = Lab::start().await;
            for time in ["first", "second"] {
                $example::run(&lab.client).await.unwrap_or_else(|error| panic!("the {time} time: {error}"));
            }
        }
    };
}

example!(the_example_aad_runs, aad);
example!(the_example_batch_runs, batch);
example!(the_example_consistency_runs, consistency);
example!(the_example_databases_and_containers_runs, databases_and_containers);
example!(the_example_follow_changes_runs, follow_changes);
example!(the_example_hierarchical_keys_runs, hierarchical_keys);
example!(the_example_optimistic_update_runs, optimistic_update);
example!(the_example_patch_item_runs, patch_item);
example!(the_example_point_read_runs, point_read);
example!(the_example_query_pages_runs, query_pages);
example!(the_example_query_stream_runs, query_stream);
example!(the_example_throughput_runs, throughput);
example!(the_example_write_items_runs, write_items);

/// As its readers run it: with a connection string in the environment.
#[tokio::test]
async fn the_program_of_the_readme_runs_word_for_word() {
    let lab = Lab::start().await;
    let readme = include_str!("../../../../README.md");
    let program = include_str!("../../examples/quickstart.rs");
    let (_, words) = program.split_once("\n\nuse ").expect("it uses something");
    let (words, _) = words.split_once("\n\n///").expect("what is not in the README");
    assert!(
        readme.contains(&format!("```rust\nuse {words}\n```")),
        "README.md has another program than quickstart.rs"
    );

    // Another process, because it takes its connection string from the environment.
    let mut run = std::process::Command::new(std::env::current_exe().expect("this program"));
    run.args(["--exact", "examples::the_program_of_the_readme", "--ignored", "--nocapture"])
        .env("COSMOS_CONNECTION_STRING", lab.running.connection_string());
    let output =
        tokio::task::spawn_blocking(move || run.output()).await.expect("no panic").expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("\"category\": String(\"tea\")"), "{output:?}");
}

#[test]
#[ignore = "run by the test above, with a connection string"]
fn the_program_of_the_readme() {
    quickstart::run().expect("it runs");
}

#[test]
fn the_example_two_regions_runs() {
    two_regions::main().expect("reads and writes go on");
}

#[test]
fn the_example_inject_faults_runs() {
    inject_faults::main().expect("the application handles its faults");
}

#[test]
fn every_example_is_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let this = include_str!("examples.rs");
    for entry in folder.read_dir().expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("text");
        let Some(name) = name.strip_suffix(".rs") else { continue };
        let elsewhere = ["bulk", "change_feed_processor"].contains(&name);
        assert!(elsewhere || this.contains(&format!("mod {name};")), "no test runs the example {name}");
    }
}
