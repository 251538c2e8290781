//! The options of every command that uses the control port of a running `peri up`.

/// The URL of the default control port of `peri up`.
pub(crate) const CONTROL_URL: &str = "http://localhost:1234";

/// The control port that a command uses, and the format of its output.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlOptions {
    /// Control port of a running `peri up`
    #[arg(long = "control", env = "PERI_CONTROL", default_value = CONTROL_URL, value_name = "URL", hide_env_values = true, global = true, display_order = 90)]
    pub(crate) url: String,

    /// Print the response as JSON on stdout
    #[arg(long, global = true, display_order = 91)]
    pub(crate) json: bool,
}
