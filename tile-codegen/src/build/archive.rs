//! A static library of object files, as the linker and rustc read it.

use crate::System;
use ar_archive_writer::{DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
use std::io::Cursor;
use std::path::Path;

/// Writes objects, each with its member name, and a symbol index.
pub(super) fn write(path: &Path, system: System, objects: &[(String, Vec<u8>)]) -> std::io::Result<()> {
    let members: Vec<NewArchiveMember<'_>> = objects
        .iter()
        .map(|(name, bytes)| NewArchiveMember::new(bytes.as_slice(), &DEFAULT_OBJECT_READER, name.clone()))
        .collect();
    let mut archive = Cursor::new(Vec::new());
    write_archive_to_stream(&mut archive, &members, system.archive(), false, None)?;
    std::fs::write(path, archive.into_inner())
}
