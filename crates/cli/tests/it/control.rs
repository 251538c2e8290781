//! The commands that look at a running account and change its shape.

use serde_json::Value;

use crate::client::Client;
use crate::lab::Lab;

fn two_regions() -> Lab {
    Lab::with(&["--regions", "West US,East US"])
}

#[test]
fn status_shows_the_regions_and_that_there_is_nothing_yet() {
    let lab = two_regions();
    let status = lab.says(&["status"]);
    assert!(status.starts_with("consistency Session\n\nREGION "), "{status}");
    assert!(
        status.contains("\nWest US  http://localhost:") && status.ends_with("\n\nno containers"),
        "{status}"
    );
    let json: Value = serde_json::from_str(&lab.says(&["status", "--json"])).unwrap();
    assert_eq!(json["regions"][1]["name"], "East US");
}

#[test]
fn regions_are_set_apart_paused_and_resumed() {
    let lab = two_regions();
    let lagged = lab.says(&["region", "lag", "1s..2s", "--to", "eastus"]);
    assert!(lagged.contains("reads   1s..2s"), "{lagged}");
    assert!(lab.says(&["region", "pause", "East US"]).contains("reads, paused"));
    assert!(!lab.says(&["region", "resume", "East US"]).contains("paused"));
    assert!(lab.says(&["region", "list"]).contains("writes"));
    lab.refuses(&["region", "pause", "Mars"], 6, "'West US'");
    lab.refuses(&["region", "lag", "soon"], 2, "20ms..50ms");
}

#[test]
fn regions_go_down_and_come_up() {
    let lab = two_regions();
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
        let shown = lab.says(&[&["region"], arguments].concat());
        let east = shown.lines().find(|line| line.starts_with("East US")).unwrap();
        assert!(east.contains(state), "{arguments:?}: {shown}");
    }
    lab.refuses(&["region", "down", "Mars"], 6, "'East US'");
    lab.refuses(&["region", "down", "eastus", "--as", "asleep"], 2, "black-hole");
    lab.refuses(&["region", "slow", "eastus", "soon"], 2, "10ms..50ms");
}

#[test]
fn faults_are_made_listed_and_removed() {
    let lab = two_regions();
    assert!(lab.says(&["fault", "list"]).starts_with("no rules (seed "));
    let shown = lab.says(&[
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
        lab.says(&[&["fault"], arguments].concat());
    }
    lab.write("rule.json", r#"{"id":"own","effect":{"status":503}}"#);
    lab.says(&["fault", "add", "rule.json"]);
    let listed: Value = serde_json::from_str(&lab.says(&["fault", "list", "--json"])).unwrap();
    assert_eq!(listed["rules"].as_array().unwrap().len(), 8);
    assert_eq!(lab.says(&["fault", "rm", "own"]), "removed 'own'");
    assert_eq!(lab.says(&["fault", "seed", "7"]), "chance starts from 7, and every rule counts from 0");
    assert!(lab.says(&["fault", "list"]).ends_with("seed 7"));
    assert_eq!(lab.says(&["fault", "clear"]), "removed 7 rules");

    lab.refuses(&["fault", "status", "200"], 6, "400 to 599");
    lab.refuses(&["fault", "status", "503", "--share", "1.5"], 6, "share");
    lab.refuses(&["fault", "status", "503", "--region", "Mars"], 6, "'East US'");
    lab.refuses(&["fault", "status", "503", "--operation", "fly"], 2, "`read`");
    lab.refuses(&["fault", "status", "503", "--share", "0.5", "--every-nth", "2"], 2, "--every-nth");
    lab.refuses(&["fault", "add", "no-such-file"], 2, "no-such-file");
    lab.refuses(&["fault", "rm", "own"], 6, "'own'");
}

#[test]
fn snapshots_come_and_go() {
    let lab = two_regions();
    assert_eq!(lab.says(&["snapshot", "save", "clean"]), "saved 'clean'");
    assert!(lab.says(&["snapshot", "list"]).contains("\nclean  "));
    assert_eq!(lab.says(&["snapshot", "restore", "clean"]), "the account is as it was in 'clean'");
    assert_eq!(lab.says(&["snapshot", "rm", "clean"]), "removed 'clean'");
    lab.refuses(&["snapshot", "restore", "clean"], 6, "peri snapshot list");
}

#[test]
fn partitions_of_containers_that_are_not_there_are_refused() {
    let lab = two_regions();
    assert!(lab.says(&["partition", "list"]).starts_with("CONTAINER  RANGE"));
    lab.refuses(&["partition", "list", "shop/items"], 6, "'shop'");
    lab.refuses(&["partition", "split", "shop/items", "0", "--hold", "1ms"], 6, "'items'");
    lab.refuses(&["partition", "merge", "shop/items", "1"], 2, "RANGES");
    lab.refuses(&["partition", "split", "items", "0"], 2, "DATABASE/CONTAINER");
}

#[test]
fn the_writes_of_one_partition_move_where_the_account_lets_them() {
    let lab = Lab::with(&["--regions", "West US,East US", "--partition-failover"]);
    lab.client().make_container();
    let failover = ["partition", "failover", "d/c", "0", "East US"];
    assert_eq!(lab.says(&failover), "range 0 is written in East US");
    lab.refuses(&["partition", "failover", "d/c", "0", "Mars"], 6, "'East US'");
    lab.refuses(&["partition", "failover", "d/c", "7", "East US"], 6, "'7'");
    let plain = two_regions();
    plain.client().make_container();
    plain.refuses(&failover, 6, "--partition-failover");
}

#[test]
fn a_held_split_is_carried_out_whoever_asked_for_it() {
    let lab = two_regions();
    let mut client = lab.client();
    client.make_container();
    let read = |client: &mut Client| {
        client.ask("GET", "/dbs/d/colls/c/docs", &[("x-ms-documentdb-partitionkeyrangeid", "0")], "")
    };
    let mut asked = lab.command(&["partition", "split", "d/c", "0", "--hold", "1s"]).spawn().unwrap();
    while read(&mut client).status != 410 {
        assert!(asked.try_wait().unwrap().is_none(), "it waits while the range is held");
    }
    asked.kill().unwrap();
    asked.wait().unwrap();
    // Until the split: 410/1007. After it: 410/1002, for good.
    while read(&mut client).header("x-ms-substatus") == Some("1007") {}
    assert_eq!(read(&mut client).header("x-ms-substatus"), Some("1002"));
    assert_eq!(lab.says(&["partition", "merge", "d/c", "1", "2"]), "1, 2 → 3");
    assert_eq!(lab.says(&["partition", "split", "d/c", "3", "--hold", "10ms"]), "3 → 4, 5");
    lab.refuses(&["partition", "split", "d/c", "3"], 6, "'3'");
    lab.refuses(&["partition", "split", "d/c", "4", "--at", "FF", "--hold", "1h"], 6, "cannot be split at");
}

#[test]
fn the_last_requests_are_listed_and_narrowed() {
    let lab = two_regions();
    crate::binary::get(&lab.up.account()["endpoint"], "/dbs/d/colls/c/docs/1");
    let all = lab.says(&["requests"]);
    assert!(all.starts_with("TIME ") && all.contains("West US") && all.contains("401"), "{all}");
    let json: Value = serde_json::from_str(&lab.says(&["requests", "--json", "--container", "d/c"])).unwrap();
    assert_eq!((&json["newest"], &json["requests"][0]["status"]), (&1.into(), &401.into()));
    assert_eq!(lab.says(&["requests", "--status", "2xx"]).lines().count(), 1, "nothing but the heading");
    lab.refuses(&["requests", "--status", "good"], 6, "4xx");
    lab.refuses(&["requests", "--region", "Mars"], 6, "'West US'");
}

#[cfg(unix)]
#[test]
fn followed_requests_are_shown_as_they_come() {
    use std::io::BufRead as _;
    let lab = two_regions();
    let mut command = lab.command(&["requests", "--follow", "--json"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    for path in ["/first", "/second"] {
        crate::binary::get(&lab.up.account()["endpoint"], path);
        let seen: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(seen["path"], path);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
