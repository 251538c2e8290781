//! What every command that talks to a running `peri up` takes.

/// Where `peri up` listens for these commands unless it is told otherwise.
pub(crate) const CONTROL_URL: &str = "http://localhost:1234";

/// Which one is meant, and in which form the answer is wanted.
#[derive(Debug, clap::Args)]
pub(crate) struct Control {
    /// The control port of the `peri up` that is meant
    #[arg(long = "control", env = "PERI_CONTROL", default_value = CONTROL_URL, value_name = "URL", hide_env_values = true, global = true, display_order = 90)]
    pub(crate) url: String,

    /// Print the answer as JSON on stdout
    #[arg(long, global = true, display_order = 91)]
    pub(crate) json: bool,
}
