//! The command line of `peri cert`.

use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  peri cert                                       print the certificate
  peri cert --out perihelion.pem                  save the certificate
  NODE_EXTRA_CA_CERTS=perihelion.pem node app.js  trust the certificate in Node.js
  curl --cacert perihelion.pem https://localhost:8081/

The certificate is created once and stored in PERI_HOME, by default in the user's data directory. It has to be trusted
only once. The Rust client (crate `perihelion`) finds it there and trusts it for accounts on this machine.";

/// Print or save the certificate that https clients have to trust
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cert {
    /// File to save the certificate to
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
