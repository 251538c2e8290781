//! The text that `peri up` prints when the account is ready: endpoints and connection strings.

use std::fmt;
use std::time::Duration;

use emulator::{RegionEndpoint, RunningEmulator};

/// The text that `peri up` prints when the account is ready.
#[derive(Debug)]
pub(crate) struct Banner {
    elapsed: Duration,
    https_endpoint: String,
    regions: Vec<RegionEndpoint>,
    https_connection_string: String,
    http_connection_string: String,
    control_endpoint: String,
    data: String,
}

impl Banner {
    pub(crate) fn of(running: &RunningEmulator, elapsed: Duration) -> Banner {
        Banner {
            elapsed,
            https_endpoint: running.https_endpoint(),
            regions: running.regions(),
            https_connection_string: running.https_connection_string(),
            http_connection_string: running.connection_string(),
            control_endpoint: running.control_endpoint(),
            data: match running.data_dir() {
                None => "in memory (use --data-dir to store it)".to_owned(),
                Some(data) => format!("{}   (fsync {})", data.path.display(), data.fsync),
            },
        }
    }
}

impl fmt::Display for Banner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = env!("CARGO_PKG_VERSION");
        let control = self.control_endpoint.trim_end_matches('/');
        writeln!(f, "  perihelion {version}   local cloud ready in {}", Milliseconds(self.elapsed))?;
        writeln!(f)?;
        let account = self.https_endpoint.trim_end_matches('/');
        match self.regions.as_slice() {
            [only] => writeln!(f, "  account      {account}   ({})", only.name)?,
            _ => writeln!(f, "  account      {account}   (leads to the write region)")?,
        }
        writeln!(f, "               {}", self.https_connection_string)?;
        writeln!(f, "               http on the same port, for clients that do not trust `peri cert`:")?;
        writeln!(f, "               {}", self.http_connection_string)?;
        for (at, region) in self.regions.iter().enumerate().filter(|_| self.regions.len() > 1) {
            let label = if at == 0 { "regions" } else { "" };
            let endpoint = region.https_endpoint.trim_end_matches('/');
            let writes = if region.writes { ", write" } else { "" };
            writeln!(f, "  {label:<13}{endpoint}   ({}{writes})", region.name)?;
        }
        writeln!(f, "  control      {control}    {control}/health/ready")?;
        write!(f, "  data         {}", self.data)
    }
}

/// Displays whole milliseconds, or tenths below ten.
struct Milliseconds(Duration);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_secs_f64() * 1_000.0;
        if milliseconds < 10.0 {
            write!(f, "{milliseconds:.1} ms")
        } else {
            write!(f, "{milliseconds:.0} ms")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str, port: u16, writes: bool) -> RegionEndpoint {
        RegionEndpoint {
            name: name.to_owned(),
            endpoint: format!("http://localhost:{port}/"),
            https_endpoint: format!("https://localhost:{port}/"),
            writes,
        }
    }

    #[test]
    fn the_banner_shows_where_everything_is_and_what_to_paste() {
        let mut banner = Banner {
            elapsed: Duration::from_micros(3_456),
            https_endpoint: "https://localhost:8081/".to_owned(),
            regions: vec![region("West US", 8082, true), region("East US", 8083, false)],
            https_connection_string: "AccountEndpoint=https://localhost:8081/;AccountKey=a2V5;".to_owned(),
            http_connection_string: "AccountEndpoint=http://localhost:8081/;AccountKey=a2V5;".to_owned(),
            control_endpoint: "http://localhost:1234/".to_owned(),
            data: "in memory".to_owned(),
        };
        let expected = "  perihelion VERSION   local cloud ready in 3.5 ms

  account      https://localhost:8081   (leads to the write region)
               AccountEndpoint=https://localhost:8081/;AccountKey=a2V5;
               http on the same port, for clients that do not trust `peri cert`:
               AccountEndpoint=http://localhost:8081/;AccountKey=a2V5;
  regions      https://localhost:8082   (West US, write)
               https://localhost:8083   (East US)
  control      http://localhost:1234    http://localhost:1234/health/ready
  data         in memory";
        assert_eq!(banner.to_string(), expected.replace("VERSION", env!("CARGO_PKG_VERSION")));
        banner.regions.truncate(1);
        let alone = banner.to_string();
        assert!(alone.contains("account      https://localhost:8081   (West US)\n"), "{alone}");
        assert!(!alone.contains("8082"), "an only region has the account's endpoint: {alone}");
    }

    #[test]
    fn time_is_shown_as_precisely_as_it_matters() {
        for (micros, text) in [(950, "0.9 ms"), (9_940, "9.9 ms"), (38_400, "38 ms"), (1_234_000, "1234 ms")]
        {
            assert_eq!(Milliseconds(Duration::from_micros(micros)).to_string(), text);
        }
    }
}
