//! The options of every command that uses the control port of a running `peri up`.

/// The URL of the default control port of `peri up`.
pub(crate) const CONTROL_URL: &str = "http://localhost:1234";

/// The control port that a command uses, and the format of its output.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlOptions {
    /// Control port of a running `peri up`
    #[arg(long = "control", env = "PERI_CONTROL", default_value = CONTROL_URL, value_name = "URL", hide_env_values = true, global = true, display_order = 90)]
    pub(crate) url: String,

    /// Token of the control port, if `peri up` was started with one
    #[arg(
        long,
        env = "PERI_CONTROL_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true,
        global = true,
        display_order = 90
    )]
    pub(crate) control_token: Option<String>,

    /// Print the response as JSON on stdout
    #[arg(long, global = true, display_order = 91)]
    pub(crate) json: bool,
}
