//! Nothing but the manifest's features: cargo builds a package once for each set of features that is asked of it.
