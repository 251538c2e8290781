//! Finds the process that listens on a port, for the error that the port is in use.
//!
//! By hand, because the crates for it bind C libraries: Linux lists listening sockets with an inode in `/proc/net/tcp`
//! and `tcp6`, and the open inodes of each process under `/proc/<pid>/fd`. On other systems, and for processes of other
//! users, no process is found.

use std::fmt;

/// A process that listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListeningProcess {
    process_id: u32,
    name: String,
}

impl fmt::Display for ListeningProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.process_id)
    }
}

/// The process that listens on `port`, if it can be found.
#[cfg(target_os = "linux")]
pub(crate) fn find(port: u16) -> Option<ListeningProcess> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .collect();
    let processes = std::fs::read_dir("/proc").ok()?;
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .find(|&process_id| has_any_socket(process_id, &inodes))
        .map(|process_id| ListeningProcess { process_id, name: name_of(process_id) })
}

/// Finds nothing: other systems have no such tables.
#[cfg(not(target_os = "linux"))]
pub(crate) fn find(_port: u16) -> Option<ListeningProcess> {
    None
}

/// Inodes of sockets in state LISTEN on `port`, from the text of `/proc/net/tcp` or `tcp6`.
#[cfg(any(target_os = "linux", test))]
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    const STATE_LISTEN: &str = "0A";
    const COLUMN_LOCAL: usize = 1;
    const COLUMN_STATE: usize = 3;
    const COLUMN_INODE: usize = 9;
    let suffix = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let listens = columns.get(COLUMN_STATE) == Some(&STATE_LISTEN);
            let here = columns.get(COLUMN_LOCAL)?.ends_with(&suffix);
            (listens && here).then(|| columns.get(COLUMN_INODE).map(|inode| (*inode).to_owned()))?
        })
        .collect()
}

#[cfg(target_os = "linux")]
fn has_any_socket(process_id: u32, inodes: &[String]) -> bool {
    let Ok(handles) = std::fs::read_dir(format!("/proc/{process_id}/fd")) else { return false };
    handles.flatten().filter_map(|handle| std::fs::read_link(handle.path()).ok()).any(|target| {
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inode.is_some_and(|inode| inodes.iter().any(|wanted| wanted == inode))
    })
}

#[cfg(target_os = "linux")]
fn name_of(process_id: u32) -> String {
    match std::fs::read_to_string(format!("/proc/{process_id}/comm")) {
        Ok(name) => name.trim().to_owned(),
        Err(_) => "a process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31415 1 0 100 0
   1: 0100007F:1F91 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 27182 1 0 20 4
   2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 16180 1 0 100 0
garbage
";

    #[test]
    fn only_listening_sockets_of_that_port_count() {
        assert_eq!(listening_inodes(TABLE, 8081), ["31415"]);
        assert_eq!(listening_inodes(TABLE, 80), ["16180"]);
        assert!(listening_inodes(TABLE, 50_000).is_empty());
        assert!(listening_inodes("", 8081).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_own_process_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let process = find(socket.local_addr().unwrap().port()).unwrap();
        assert_eq!(process.process_id, std::process::id());
    }
}
