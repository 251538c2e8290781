//! `peri cert`: prints or saves one certificate that does not change.

use crate::binary::{TestFolder, text};

#[test]
fn the_certificate_is_created_once_and_printed_or_saved() {
    let folder = TestFolder::new();
    let printed = folder.run(&["cert"]);
    let pem = text(&printed.stdout);
    assert_eq!(printed.status.code(), Some(0), "{}", text(&printed.stderr));
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----\n"), "{pem}");
    assert!(pem.ends_with("-----END CERTIFICATE-----\n"), "{pem}");

    let saved = folder.run(&["cert", "--out", "ca.pem"]);
    assert_eq!((saved.status.code(), text(&saved.stdout)), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(folder.path().join("ca.pem")).unwrap(), pem);
}

#[cfg(all(unix, not(target_os = "macos")))]
#[test]
fn the_certificate_is_stored_in_the_data_directory_of_the_user() {
    let folder = TestFolder::new();
    let (home, data) = (folder.path().join("home"), folder.path().join("data"));
    let stored_in = |data_home: Option<&std::ffi::OsStr>| {
        let mut command = folder.peri(&["cert"]);
        command.env_remove("PERI_HOME").env("HOME", &home).env_remove("XDG_DATA_HOME");
        if let Some(data_home) = data_home {
            command.env("XDG_DATA_HOME", data_home);
        }
        assert_eq!(command.output().unwrap().status.code(), Some(0));
        let has_files = |path: &std::path::Path| path.join("perihelion").read_dir().is_ok();
        let found = (has_files(&data), has_files(&home.join(".local/share")));
        for path in [&home, &data] {
            let _missing = std::fs::remove_dir_all(path);
        }
        found
    };
    assert_eq!(stored_in(Some(data.as_os_str())), (true, false));
    assert_eq!(stored_in(Some("relative".as_ref())), (false, true));
    assert_eq!(stored_in(None), (false, true));
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_for_cert_and_a_warning_for_up() {
    let folder = TestFolder::new();
    let blocked = folder.path().join("a-file");
    std::fs::write(&blocked, "").unwrap();

    let output = folder.peri(&["cert"]).env("PERI_HOME", &blocked).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("PERI_HOME"), "{}", text(&output.stderr));

    let output = folder.run(&["cert", "--out", "no/such/folder/ca.pem"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("ca.pem"), "{}", text(&output.stderr));

    let mut command = folder.peri(&["up", "--port", "0", "--control-port", "0", "--json"]);
    command.env("PERI_HOME", &blocked);
    let up = crate::binary::Up::start(command);
    assert_eq!(up.ready["ready"], true);
}
