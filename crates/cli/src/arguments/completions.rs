//! The command line of `peri completions`.

const EXAMPLES: &str = "\
Examples:
  peri completions bash > ~/.local/share/bash-completion/completions/peri
  peri completions zsh > \"${fpath[1]}/_peri\"
  peri completions fish > ~/.config/fish/completions/peri.fish
  peri completions powershell >> $PROFILE";

/// Print a script that completes the commands and options of `peri` in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell to write the script for
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
