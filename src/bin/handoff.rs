//! The one program: nodes and commands, by its name or its first argument.
fn main() {}
