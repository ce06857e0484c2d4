//! What is read off a code object with `llvm-readobj` and `llvm-objdump`.

use super::compiled::{Compiled, tool};
use super::instructions::Instructions;
use super::table::{Column, Wanted};
use std::process::Command;

/// What one kernel becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    threads: u64,
    notes: Notes,
    code: Instructions,
}

/// What the code object's metadata says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Notes {
    vgprs: u64,
    agprs: u64,
    sgprs: u64,
    spilled_vgprs: u64,
    spilled_sgprs: u64,
    scratch: u64,
    lds: u64,
}

const GLOBAL_LOADS: [&str; 3] = ["global_load", "buffer_load", "flat_load"];
const GLOBAL_STORES: [&str; 3] = ["global_store", "buffer_store", "flat_store"];
const LDS_LOADS: [&str; 2] = ["ds_read", "ds_load"];
const LDS_STORES: [&str; 2] = ["ds_write", "ds_store"];

/// Whether an access is of 16 bytes: one of them, or two halves.
fn is_wide(name: &str) -> bool {
    let two = ["read2", "write2", "2addr"].iter().any(|two| name.contains(two));
    name.contains("dwordx4") || name.contains("b128") || two && name.ends_with("_b64")
}

fn wide(measured: &Measured, starts: &[&str]) -> u64 {
    measured.code.count(|name| is_wide(name) && starts.iter().any(|start| name.starts_with(start)))
}

fn narrow(measured: &Measured, starts: &[&str]) -> u64 {
    measured.code.starting(starts) - wide(measured, starts)
}

/// Whether an instruction moves values between lanes.
fn crosses_lanes(name: &str) -> bool {
    name.contains("_dpp")
        || name.contains("permlane")
        || ["ds_bpermute", "ds_permute", "ds_swizzle"].contains(&base(name))
}

/// A name without the width of its operand.
fn base(name: &str) -> &str {
    name.strip_suffix("_b32").unwrap_or(name)
}

/// The columns of AMD's GPUs.
pub(super) const COLUMNS: &[Column<Measured>] = &[
    Column::new("threads", "threads of a block", Wanted::Any, |m| m.threads),
    Column::new("VGPRs", "vector registers of a thread", Wanted::Few, |m| m.notes.vgprs),
    Column::new("AGPRs", "accumulation registers of a thread", Wanted::Any, |m| m.notes.agprs),
    Column::new("SGPRs", "scalar registers of a wave", Wanted::Few, |m| m.notes.sgprs),
    Column::new("VGPR spills", "vector registers that are spilled", Wanted::Few, |m| m.notes.spilled_vgprs),
    Column::new("SGPR spills", "scalar registers that are spilled", Wanted::Few, |m| m.notes.spilled_sgprs),
    Column::new("scratch", "bytes of a thread's scratch memory", Wanted::Few, |m| m.notes.scratch),
    Column::new("LDS", "bytes of a block's shared memory", Wanted::Few, |m| m.notes.lds),
    Column::new("code", "instructions", Wanted::Few, |m| m.code.all()),
    Column::new("MFMA", "`v_mfma`, `v_smfmac`, `v_wmma`, `v_swmmac`", Wanted::Present, |m| {
        m.code.starting(&["v_mfma", "v_smfmac", "v_wmma", "v_swmmac"])
    }),
    Column::new("load 128", "`global_load`, `buffer_load`, `flat_load` of 16 bytes", Wanted::Present, |m| {
        wide(m, &GLOBAL_LOADS)
    }),
    Column::new("load <", "narrower ones", Wanted::Few, |m| narrow(m, &GLOBAL_LOADS)),
    Column::new(
        "store 128",
        "`global_store`, `buffer_store`, `flat_store` of 16 bytes",
        Wanted::Present,
        |m| wide(m, &GLOBAL_STORES),
    ),
    Column::new("store <", "narrower ones", Wanted::Few, |m| narrow(m, &GLOBAL_STORES)),
    Column::new("atomics", "`global_atomic`, `buffer_atomic`, `flat_atomic`", Wanted::Few, |m| {
        m.code.starting(&["global_atomic", "buffer_atomic", "flat_atomic"])
    }),
    Column::new("ds_read 128", "loads from shared memory of 16 bytes, or of twice 8", Wanted::Present, |m| {
        wide(m, &LDS_LOADS)
    }),
    Column::new("ds_read <", "narrower ones", Wanted::Few, |m| narrow(m, &LDS_LOADS)),
    Column::new("ds_write 128", "stores to shared memory of 16 bytes, or of twice 8", Wanted::Present, |m| {
        wide(m, &LDS_STORES)
    }),
    Column::new("ds_write <", "narrower ones", Wanted::Few, |m| narrow(m, &LDS_STORES)),
    Column::new(
        "lanes",
        "DPP, `permlane`, `ds_bpermute`, `ds_swizzle`: values from other lanes",
        Wanted::Any,
        |m| m.code.count(crosses_lanes),
    ),
    Column::new("barriers", "`s_barrier`, or its wait where that is of its own", Wanted::Few, |m| {
        m.code.count(|name| name == "s_barrier" || name == "s_barrier_wait")
    }),
    Column::new("branches", "conditional branches: `s_cbranch`", Wanted::Few, |m| {
        m.code.starting(&["s_cbranch"])
    }),
    Column::new(
        "scratch_",
        "loads from and stores to scratch memory; those of gfx90a are `buffer_` instructions and count there",
        Wanted::Few,
        |m| m.code.starting(&["scratch_"]),
    ),
];

impl Measured {
    /// Reads and disassembles.
    ///
    /// # Errors
    /// Where LLVM's tools can't, or the metadata lacks something.
    pub(super) fn of(compiled: &Compiled) -> Result<Measured, String> {
        let notes = tool(Command::new("llvm-readobj-22").arg("--notes").arg(&compiled.file))?;
        let code = tool(Command::new("llvm-objdump-22").arg("-d").arg(&compiled.file))?;
        Ok(Measured {
            threads: compiled.threads,
            notes: Notes::read(&notes)?,
            code: Instructions::of_objdump(&code),
        })
    }
}

impl Notes {
    fn read(text: &str) -> Result<Notes, String> {
        let field = |name: &str| {
            let mut lines = text.lines().map(|line| line.trim_start().trim_start_matches("- "));
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let number = value.and_then(|value| value.trim().parse::<u64>().ok());
            number.ok_or_else(|| format!("the code object's metadata has no `{name}`:\n{text}"))
        };
        Ok(Notes {
            vgprs: field(".vgpr_count")?,
            agprs: field(".agpr_count").unwrap_or(0),
            sgprs: field(".sgpr_count")?,
            spilled_vgprs: field(".vgpr_spill_count")?,
            spilled_sgprs: field(".sgpr_spill_count")?,
            scratch: field(".private_segment_fixed_size")?,
            lds: field(".group_segment_fixed_size")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes() -> Notes {
        Notes::read(include_str!("samples/notes.txt")).unwrap()
    }

    #[test]
    fn metadata_is_read() {
        let expected = Notes {
            vgprs: 165,
            agprs: 4,
            sgprs: 106,
            spilled_vgprs: 3,
            spilled_sgprs: 2,
            scratch: 12,
            lds: 32768,
        };
        assert_eq!(notes(), expected);
        assert!(Notes::read("amdhsa.kernels:").unwrap_err().contains("no `.vgpr_count`"));
    }

    #[test]
    fn columns_count_what_they_say() {
        let names = [
            "global_load_dwordx4",
            "buffer_load_b128",
            "flat_load_ushort",
            "global_store_b128",
            "buffer_store_dword",
            "ds_read2_b64",
            "ds_load_2addr_b64",
            "ds_load_2addr_b32",
            "global_atomic_pk_add_bf16",
            "ds_read_b128",
            "ds_write2st64_b64",
            "ds_store_b16",
            "v_mfma_f32_16x16x16_bf16",
            "v_wmma_f32_16x16x16_bf16",
            "v_add_f32_dpp",
            "ds_bpermute_b32",
            "v_permlanex16_b32",
            "v_perm_b32",
            "s_barrier",
            "s_barrier_signal",
            "s_barrier_wait",
            "s_cbranch_execz",
            "scratch_load_dword",
            "s_endpgm",
        ];
        let text: String = names.iter().map(|name| format!("\t{name} v0\n")).collect();
        let measured = Measured { threads: 128, notes: notes(), code: Instructions::of_objdump(&text) };
        let counts: Vec<(&str, u64)> =
            COLUMNS.iter().map(|column| (column.head, (column.of)(&measured))).skip(8).collect();
        let expected = [
            ("code", 24),
            ("MFMA", 2),
            ("load 128", 2),
            ("load <", 1),
            ("store 128", 1),
            ("store <", 1),
            ("atomics", 1),
            ("ds_read 128", 3),
            ("ds_read <", 1),
            ("ds_write 128", 1),
            ("ds_write <", 1),
            ("lanes", 3),
            ("barriers", 2),
            ("branches", 1),
            ("scratch_", 1),
        ];
        assert_eq!(counts, expected);
    }
}
