//! `peri cert`: the same certificate every time, printed or saved.

use crate::binary::{Home, text};

#[test]
fn the_certificate_is_made_once_and_printed_or_saved() {
    let home = Home::new();
    let printed = home.run(&["cert"]);
    let pem = text(&printed.stdout);
    assert_eq!(printed.status.code(), Some(0), "{}", text(&printed.stderr));
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----\n"), "{pem}");
    assert!(pem.ends_with("-----END CERTIFICATE-----\n"), "{pem}");

    let saved = home.run(&["cert", "--out", "ca.pem"]);
    assert_eq!((saved.status.code(), text(&saved.stdout)), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(home.path().join("ca.pem")).unwrap(), pem);
}

#[test]
fn a_place_that_cannot_be_used_is_an_error_for_cert_and_a_warning_for_up() {
    let home = Home::new();
    let blocked = home.path().join("a-file");
    std::fs::write(&blocked, "").unwrap();

    let output = home.peri(&["cert"]).env("PERI_HOME", &blocked).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("PERI_HOME"), "{}", text(&output.stderr));

    let output = home.run(&["cert", "--out", "no/such/folder/ca.pem"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("ca.pem"), "{}", text(&output.stderr));

    let mut command = home.peri(&["up", "--port", "0", "--control-port", "0", "--json"]);
    command.env("PERI_HOME", &blocked);
    let up = crate::binary::Up::start(command);
    assert_eq!(up.ready["ready"], true);
}
