//! `peri cert`.

use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  peri cert                                       print it
  peri cert --out perihelion.pem                  save it
  NODE_EXTRA_CA_CERTS=perihelion.pem node app.js  trust it in Node.js
  curl --cacert perihelion.pem https://localhost:8081/

It is made once and kept in PERI_HOME, by default the user's data folder, so it has to be trusted once.";

/// Print or save the certificate that https clients have to trust
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cert {
    /// Save it to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
