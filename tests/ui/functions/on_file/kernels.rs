//! A module that is a file.
