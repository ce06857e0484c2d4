//! Compile errors as a user sees them: `<theme>/<case>.rs` with the expected message next to it.
//!
//! `TRYBUILD=overwrite cargo test --package tile-test-ui` writes the messages anew; read the difference before committing
//! it.

#[test]
fn wrong_kernels_are_refused_with_a_useful_message() {
    trybuild::TestCases::new().compile_fail("*/*.rs");
}
