//! Runs every example against a test account; each twice, because the second run finds the resources of the first.
//!
//! The tests include the files of `examples` themselves.

use crate::TestAccount;

#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/aad.rs"]
mod aad;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/batch.rs"]
mod batch;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/blocking.rs"]
mod blocking;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/call_options.rs"]
mod call_options;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/consistency.rs"]
mod consistency;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/databases_and_containers.rs"]
mod databases_and_containers;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/follow_changes.rs"]
mod follow_changes;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/hierarchical_keys.rs"]
mod hierarchical_keys;
#[path = "../../examples/inject_faults.rs"]
mod inject_faults;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/optimistic_update.rs"]
mod optimistic_update;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/patch_item.rs"]
mod patch_item;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/point_read.rs"]
mod point_read;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/query_pages.rs"]
mod query_pages;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/query_stream.rs"]
mod query_stream;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/quickstart.rs"]
mod quickstart;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/read_many.rs"]
mod read_many;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/throughput.rs"]
mod throughput;
#[path = "../../examples/two_regions.rs"]
mod two_regions;
#[allow(dead_code, reason = "its main, and items of the shop that it does not use")]
#[path = "../../examples/write_items.rs"]
mod write_items;

macro_rules! example {
    ($test:ident, $example:ident) => {
        #[tokio::test]
        async fn $test() {
            let account = TestAccount::start().await;
            for time in ["first", "second"] {
                $example::run(&account.client)
                    .await
                    .unwrap_or_else(|error| panic!("the {time} time: {error}"));
            }
        }
    };
}

example!(the_example_aad_runs, aad);
example!(the_example_batch_runs, batch);
example!(the_example_call_options_runs, call_options);
example!(the_example_consistency_runs, consistency);
example!(the_example_databases_and_containers_runs, databases_and_containers);
example!(the_example_follow_changes_runs, follow_changes);
example!(the_example_hierarchical_keys_runs, hierarchical_keys);
example!(the_example_optimistic_update_runs, optimistic_update);
example!(the_example_patch_item_runs, patch_item);
example!(the_example_point_read_runs, point_read);
example!(the_example_query_pages_runs, query_pages);
example!(the_example_query_stream_runs, query_stream);
example!(the_example_read_many_runs, read_many);
example!(the_example_throughput_runs, throughput);
example!(the_example_write_items_runs, write_items);

/// Runs the program as the README says: with a connection string in the environment.
#[tokio::test]
async fn the_readme_program_runs_unchanged() {
    let account = TestAccount::start().await;
    let readme = include_str!("../../../../README.md");
    let program = include_str!("../../examples/quickstart.rs");
    let (_, code) = program.split_once("\n\nuse ").expect("it uses something");
    let (code, _) = code.split_once("\n\n///").expect("what is not in the README");
    assert!(
        readme.contains(&format!("```rust\nuse {code}\n```")),
        "README.md has another program than quickstart.rs"
    );

    // Another process, because it takes its connection string from the environment.
    let mut run = std::process::Command::new(std::env::current_exe().expect("this program"));
    run.args(["--exact", "examples::run_the_readme_program", "--ignored", "--nocapture"])
        .env("COSMOS_CONNECTION_STRING", account.running.connection_string());
    let output =
        tokio::task::spawn_blocking(move || run.output()).await.expect("no panic").expect("it starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("\"category\": String(\"tea\")"), "{output:?}");
}

#[test]
#[ignore = "run by the test above, with a connection string"]
fn run_the_readme_program() {
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

#[tokio::test]
async fn the_example_blocking_runs() {
    let account = TestAccount::start().await;
    let client = account.client.clone();
    let (done, ended) = tokio::sync::oneshot::channel();
    // A thread of its own: on those of a runtime, waiting is refused.
    let thread = std::thread::spawn(move || done.send(blocking::run(&client)));
    ended.await.expect("the thread ends").expect("the program runs");
    thread.join().expect("no panic").expect("the test has received the result");
}

#[test]
fn every_example_is_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let this = include_str!("examples.rs");
    for entry in folder.read_dir().expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("text");
        let Some(name) = name.strip_suffix(".rs") else { continue };
        let is_tested_elsewhere = ["bulk", "change_feed_processor", "telemetry"].contains(&name);
        assert!(
            is_tested_elsewhere || this.contains(&format!("mod {name};")),
            "no test runs the example {name}"
        );
    }
}
