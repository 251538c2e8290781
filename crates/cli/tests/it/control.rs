//! The commands that use the control port of a running account.

use serde_json::Value;

use crate::client::Client;
use crate::test_account::TestAccount;

fn two_regions() -> TestAccount {
    TestAccount::with(&["--regions", "West US,East US"])
}

#[test]
fn status_shows_the_regions_and_no_containers() {
    let account = two_regions();
    let status = account.stdout_of(&["status"]);
    let endpoint = account.up.account()["endpoint"].as_str().unwrap().trim_end_matches('/');
    let first = format!("account     {endpoint}\nconsistency Session\n\nREGION ");
    assert!(status.starts_with(&first), "{status}");
    assert!(
        status.contains("\nWest US  http://localhost:") && status.ends_with("\n\nno containers"),
        "{status}"
    );
    let json: Value = serde_json::from_str(&account.stdout_of(&["status", "--json"])).unwrap();
    assert_eq!(json["regions"][1]["name"], "East US");
}

#[test]
fn a_region_is_added_while_the_account_runs_and_stays_in_its_directory() {
    let account = TestAccount::with(&["--data-dir", "data"]);
    let listed = account.stdout_of(&["region", "add", "East US"]);
    assert!(listed.contains("South Central US  http") && listed.contains("\nEast US "), "{listed}");
    account.fails_with(&["region", "add", " "], 6, "a region needs a name");
    let TestAccount { folder, up } = account;
    up.signal("TERM");
    assert_eq!(up.end().0.code(), Some(0));
    let up = folder.up(&["--data-dir", "data"]);
    let names: Vec<_> =
        up.account()["regions"].as_array().unwrap().iter().map(|region| region["name"].clone()).collect();
    assert_eq!(names, ["South Central US", "East US"]);
}

#[test]
fn events_are_shown_and_logged() {
    let account = TestAccount::with(&["--regions", "West US,East US", "-v"]);
    account.stdout_of(&["region", "down", "eastus", "--for", "1h"]);
    account.stdout_of(&["region", "failover", "eastus"]);
    let shown = account.stdout_of(&["events"]);
    assert!(shown.starts_with("TIME ") && shown.contains("regionDown  East US  it is down"), "{shown}");
    assert!(shown.contains("for 1h") && shown.contains("failover"), "{shown}");
    let json: Value =
        serde_json::from_str(&account.stdout_of(&["events", "--kind", "failover", "--json"])).unwrap();
    assert_eq!(json["events"].as_array().map(Vec::len), Some(1));
    account.fails_with(&["events", "--region", "Mars"], 6, "'West US'");
    account.up.signal("TERM");
    let (_, _, stderr) = account.up.end();
    assert!(stderr.contains("\"regionDown\"") && stderr.contains("\"failover\""), "{stderr}");
}

#[test]
fn region_lag_pause_and_resume_are_shown() {
    let account = two_regions();
    let lagged = account.stdout_of(&["region", "lag", "1s..2s", "--to", "eastus"]);
    assert!(lagged.contains("reads   1s..2s"), "{lagged}");
    assert!(account.stdout_of(&["region", "pause", "East US"]).contains("reads, paused"));
    assert!(!account.stdout_of(&["region", "resume", "East US"]).contains("paused"));
    assert!(account.stdout_of(&["region", "list"]).contains("writes"));
    account.fails_with(&["region", "pause", "Mars"], 6, "'West US'");
    account.fails_with(&["region", "lag", "soon"], 2, "20ms..50ms");
}

#[test]
fn regions_go_down_and_come_up() {
    let account = two_regions();
    for (arguments, state) in [
        (&["down", "East US", "--for", "1h"][..], "reads, refused for "),
        (&["down", "eastus", "--as", "black-hole"], "reads, blackHole"),
        (&["down", "eastus", "--as", "503"], "reads, unavailable"),
        (&["drain", "eastus"], "reads, draining"),
        (&["slow", "eastus", "10ms..20ms"], "reads, slow"),
        (&["storm", "eastus", "--share", "0.5", "--retry-after", "5ms"], "reads, storm"),
        (&["up", "eastus"], "reads   "),
        (&["failover", "eastus"], "writes"),
    ] {
        let shown = account.stdout_of(&[&["region"], arguments].concat());
        let east = shown.lines().find(|line| line.starts_with("East US")).unwrap();
        assert!(east.contains(state), "{arguments:?}: {shown}");
    }
    account.fails_with(&["region", "down", "Mars"], 6, "'East US'");
    account.fails_with(&["region", "down", "eastus", "--as", "asleep"], 2, "black-hole");
    account.fails_with(&["region", "slow", "eastus", "soon"], 2, "10ms..50ms");
}

#[test]
fn faults_are_added_listed_and_removed() {
    let account = two_regions();
    assert!(account.stdout_of(&["fault", "list"]).starts_with("no rules (seed "));
    let shown = account.stdout_of(&[
        "fault",
        "status",
        "429",
        "--sub-status",
        "3200",
        "--operation",
        "read",
        "--share",
        "0.3",
        "--for",
        "1h",
        "--id",
        "storm",
    ]);
    assert!(shown.contains("429/3200") && shown.contains("read, share 0.3"), "{shown}");
    for arguments in [
        &["delay", "p50=5ms,p99=9ms", "--region", "East US,westus"][..],
        &["delay", "1s", "--answer", "--operation", "create,upsert"],
        &["close", "before", "--container", "shop/carts", "--partition-key", "p1"],
        &["close", "after", "--delay", "5ms", "--every-nth", "3"],
        &["stall", "--range", "0"],
        &["go-away", "--count", "1", "--after", "1s"],
    ] {
        account.stdout_of(&[&["fault"], arguments].concat());
    }
    account.write("rule.json", r#"{"id":"own","effect":{"status":503}}"#);
    account.stdout_of(&["fault", "add", "rule.json"]);
    let listed: Value = serde_json::from_str(&account.stdout_of(&["fault", "list", "--json"])).unwrap();
    assert_eq!(listed["rules"].as_array().unwrap().len(), 8);
    assert_eq!(account.stdout_of(&["fault", "rm", "own"]), "removed 'own'");
    assert_eq!(account.stdout_of(&["fault", "seed", "7"]), "the seed is 7, and all rules count from 0");
    assert!(account.stdout_of(&["fault", "list"]).ends_with("seed 7"));
    assert_eq!(account.stdout_of(&["fault", "clear"]), "removed 7 rules");

    account.fails_with(&["fault", "status", "200"], 6, "400 to 599");
    account.fails_with(&["fault", "status", "503", "--share", "1.5"], 6, "share");
    account.fails_with(&["fault", "status", "503", "--region", "Mars"], 6, "'East US'");
    account.fails_with(&["fault", "status", "503", "--operation", "fly"], 2, "`read`");
    account.fails_with(&["fault", "status", "503", "--share", "0.5", "--every-nth", "2"], 2, "--every-nth");
    account.fails_with(&["fault", "add", "no-such-file"], 2, "no-such-file");
    account.fails_with(&["fault", "rm", "own"], 6, "'own'");
}

#[test]
fn snapshots_are_saved_restored_and_deleted() {
    let account = two_regions();
    assert_eq!(account.stdout_of(&["snapshot", "save", "clean"]), "saved 'clean'");
    assert!(account.stdout_of(&["snapshot", "list"]).contains("\nclean  "));
    assert_eq!(account.stdout_of(&["snapshot", "restore", "clean"]), "restored 'clean'");
    assert_eq!(account.stdout_of(&["snapshot", "rm", "clean"]), "removed 'clean'");
    account.fails_with(&["snapshot", "restore", "clean"], 6, "peri snapshot list");
}

#[test]
fn partitions_of_missing_containers_are_errors() {
    let account = two_regions();
    assert!(account.stdout_of(&["partition", "list"]).starts_with("CONTAINER  RANGE"));
    account.fails_with(&["partition", "list", "shop/items"], 6, "'shop'");
    account.fails_with(&["partition", "split", "shop/items", "0", "--hold", "1ms"], 6, "'items'");
    account.fails_with(&["partition", "merge", "shop/items", "1"], 2, "RANGES");
    account.fails_with(&["partition", "split", "items", "0"], 2, "DATABASE/CONTAINER");
}

#[test]
fn a_partition_fails_over_if_the_account_allows_it() {
    let account = TestAccount::with(&["--regions", "West US,East US", "--partition-failover"]);
    account.client().create_container();
    let failover = ["partition", "failover", "d/c", "0", "East US"];
    assert_eq!(account.stdout_of(&failover), "range 0 is written in East US");
    account.fails_with(&["partition", "failover", "d/c", "0", "Mars"], 6, "'East US'");
    account.fails_with(&["partition", "failover", "d/c", "7", "East US"], 6, "'7'");
    let plain = two_regions();
    plain.client().create_container();
    plain.fails_with(&failover, 6, "--partition-failover");
}

#[test]
fn a_held_split_is_executed_although_its_command_was_killed() {
    let account = two_regions();
    let mut client = account.client();
    client.create_container();
    let read = |client: &mut Client| {
        client.request("GET", "/dbs/d/colls/c/docs", &[("x-ms-documentdb-partitionkeyrangeid", "0")], "")
    };
    let mut splitting = account.command(&["partition", "split", "d/c", "0", "--hold", "1s"]).spawn().unwrap();
    while read(&mut client).status != 410 {
        assert!(splitting.try_wait().unwrap().is_none(), "the command waits while the range is held");
    }
    splitting.kill().unwrap();
    splitting.wait().unwrap();
    // Until the split: 410/1007. After it: 410/1002, for good.
    while read(&mut client).header("x-ms-substatus") == Some("1007") {}
    assert_eq!(read(&mut client).header("x-ms-substatus"), Some("1002"));
    assert_eq!(account.stdout_of(&["partition", "merge", "d/c", "1", "2"]), "1, 2 → 3");
    assert_eq!(account.stdout_of(&["partition", "split", "d/c", "3", "--hold", "10ms"]), "3 → 4, 5");
    account.fails_with(&["partition", "split", "d/c", "3"], 6, "'3'");
    account.fails_with(
        &["partition", "split", "d/c", "4", "--at", "FF", "--hold", "1h"],
        6,
        "cannot be split at",
    );
}

#[test]
fn the_last_requests_are_listed_and_filtered() {
    let account = two_regions();
    crate::binary::get(&account.up.account()["endpoint"], "/dbs/d/colls/c/docs/1");
    let all = account.stdout_of(&["requests"]);
    assert!(all.starts_with("TIME ") && all.contains("West US") && all.contains("401"), "{all}");
    let json: Value =
        serde_json::from_str(&account.stdout_of(&["requests", "--json", "--container", "d/c"])).unwrap();
    assert_eq!((&json["newest"], &json["requests"][0]["status"]), (&1.into(), &401.into()));
    assert_eq!(
        account.stdout_of(&["requests", "--status", "2xx"]).lines().count(),
        1,
        "nothing but the heading"
    );
    account.fails_with(&["requests", "--status", "good"], 6, "4xx");
    account.fails_with(&["requests", "--region", "Mars"], 6, "'West US'");
}

#[cfg(unix)]
#[test]
fn follow_shows_new_requests() {
    use std::io::BufRead as _;
    let account = two_regions();
    let mut command = account.command(&["requests", "--follow", "--json"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    for path in ["/first", "/second"] {
        crate::binary::get(&account.up.account()["endpoint"], path);
        let seen: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(seen["path"], path);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
