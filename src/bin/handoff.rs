//! The one program: commands by its first argument, nodes by that or by the name it is started under.

use std::process::ExitCode;

fn main() -> ExitCode {
    handoff::app::run(std::env::args_os())
}
