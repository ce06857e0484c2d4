//! Build-script helper.
