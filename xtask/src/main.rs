//! Set-up, demo, test and benchmark commands.
fn main() {}
