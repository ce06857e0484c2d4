//! What is read off PTX with `ptxas -v` and `nvdisasm`.

use super::compiled::{Compiled, tool};
use super::instructions::Instructions;
use super::table::{Column, Wanted};
use std::path::Path;
use std::process::Command;

/// What one kernel becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    threads: u64,
    dynamic_shared: u64,
    ptxas: Report,
    sass: Instructions,
}

/// What `ptxas -v` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Report {
    registers: u64,
    spill_stores: u64,
    spill_loads: u64,
    stack: u64,
    static_shared: u64,
    barriers: u64,
    /// What it says of `wgmma` that waits for each other.
    serialized: Vec<String>,
}

fn is_wide(name: &str) -> bool {
    name.contains(".128") || name.contains(".256")
}

fn wide(measured: &Measured, start: &str) -> u64 {
    measured.sass.count(|name| name.starts_with(start) && is_wide(name))
}

fn narrow(measured: &Measured, start: &str) -> u64 {
    measured.sass.count(|name| name.starts_with(start) && !is_wide(name))
}

/// The columns of NVIDIA's GPUs. `LDG.` with its dot is no `LDGSTS`.
pub(super) const COLUMNS: &[Column<Measured>] = &[
    Column::new("threads", "threads of a block", Wanted::Any, |m| m.threads),
    Column::new("registers", "registers of a thread", Wanted::Few, |m| m.ptxas.registers),
    Column::new("spill st", "bytes that a thread spills", Wanted::Few, |m| m.ptxas.spill_stores),
    Column::new("spill ld", "bytes of spills that it reads", Wanted::Few, |m| m.ptxas.spill_loads),
    Column::new("stack", "bytes of a thread's stack", Wanted::Few, |m| m.ptxas.stack),
    Column::new("shared", "bytes of a block's shared memory, static and dynamic", Wanted::Few, |m| {
        m.ptxas.static_shared + m.dynamic_shared
    }),
    Column::new("barriers", "hardware barriers of a block", Wanted::Any, |m| m.ptxas.barriers),
    Column::new("SASS", "instructions", Wanted::Few, |m| m.sass.all()),
    Column::new(
        "GMMA",
        "`wgmma` and `tcgen05.mma`: HGMMA and its kin, UTCHMMA and its kin",
        Wanted::Present,
        |m| {
            m.sass.count(|name| {
                let base = name.split('.').next().unwrap_or(name);
                base.ends_with("GMMA") || base.starts_with("UTC") && base.ends_with("MMA")
            })
        },
    ),
    Column::new("MMA", "`mma.sync`: HMMA, IMMA, DMMA, QMMA, OMMA", Wanted::Present, |m| {
        m.sass.starting(&["HMMA", "IMMA", "DMMA", "QMMA", "OMMA"])
    }),
    Column::new("UTMALDG", "tensor-map loads", Wanted::Present, |m| m.sass.starting(&["UTMALDG"])),
    Column::new("to both", "those that bring a tile to both blocks of a pair", Wanted::Present, |m| {
        m.sass.count(|name| name.starts_with("UTMALDG") && name.contains("MULTICAST"))
    }),
    Column::new("UTMASTG", "tensor-map stores", Wanted::Present, |m| m.sass.starting(&["UTMASTG"])),
    Column::new("LDGSTS", "`cp.async`", Wanted::Present, |m| m.sass.starting(&["LDGSTS"])),
    Column::new("LDSM", "`ldmatrix`", Wanted::Present, |m| m.sass.starting(&["LDSM"])),
    Column::new("STSM", "`stmatrix`", Wanted::Present, |m| m.sass.starting(&["STSM"])),
    Column::new("LDG 128", "loads from global memory of 16 bytes or more", Wanted::Present, |m| {
        wide(m, "LDG.")
    }),
    Column::new("LDG <", "narrower ones", Wanted::Few, |m| narrow(m, "LDG.")),
    Column::new("STG 128", "stores to global memory of 16 bytes or more", Wanted::Present, |m| {
        wide(m, "STG.")
    }),
    Column::new("STG <", "narrower ones", Wanted::Few, |m| narrow(m, "STG.")),
    Column::new("RED", "atomic operations on global memory: RED, ATOM, REDG, ATOMG", Wanted::Few, |m| {
        m.sass.count(|name| {
            let base = name.split('.').next().unwrap_or(name);
            ["RED", "ATOM", "REDG", "ATOMG"].contains(&base)
        })
    }),
    Column::new("SHFL", "shuffles within a warp", Wanted::Any, |m| m.sass.starting(&["SHFL"])),
    Column::new("BAR", "barriers of a block", Wanted::Few, |m| m.sass.starting(&["BAR."])),
    Column::new("LDL/STL", "loads from and stores to local memory", Wanted::Few, |m| {
        m.sass.starting(&["LDL", "STL"])
    }),
];

impl Measured {
    /// Assembles and disassembles.
    ///
    /// # Errors
    /// What the assembler refuses, and its words where `wgmma` wait for each other: then the tensor cores idle.
    pub(super) fn of(compiled: &Compiled, ptxas: &Path, nvdisasm: &Path) -> Result<Measured, String> {
        let cubin = compiled.file.with_extension("cubin");
        let mut assemble = Command::new(ptxas);
        assemble.arg("-v").arg(format!("-arch={}", compiled.target)).arg(&compiled.file);
        let report = Report::read(&tool(assemble.arg("-o").arg(&cubin))?)?;
        if !report.serialized.is_empty() {
            let lines = report.serialized.join("\n");
            return Err(format!("{} on {}:\n{lines}", compiled.instance, compiled.target));
        }
        let sass = Instructions::of_sass(&tool(Command::new(nvdisasm).arg("-c").arg(&cubin))?);
        let Compiled { threads, dynamic_shared, .. } = *compiled;
        Ok(Measured { threads, dynamic_shared, ptxas: report, sass })
    }
}

impl Report {
    fn read(text: &str) -> Result<Report, String> {
        let used = text.lines().find(|line| line.contains(": Used "));
        let used = used.ok_or_else(|| format!("ptxas doesn't say what registers a kernel uses:\n{text}"))?;
        let properties = text.lines().find(|line| line.contains(" bytes stack frame"));
        let properties = properties.ok_or_else(|| format!("ptxas doesn't say what is spilled:\n{text}"))?;
        Ok(Report {
            registers: number_before(used, " registers"),
            barriers: number_before(used, " barriers"),
            static_shared: number_before(used, " bytes smem"),
            stack: number_before(properties, " bytes stack frame"),
            spill_stores: number_before(properties, " bytes spill stores"),
            spill_loads: number_before(properties, " bytes spill loads"),
            serialized: text.lines().filter(|line| is_serialization(line)).map(str::to_owned).collect(),
        })
    }
}

/// The number before these words; 0 if they aren't there.
fn number_before(line: &str, words: &str) -> u64 {
    let before = line.split_once(words).and_then(|(before, _)| before.rsplit(' ').next());
    before.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Whether `ptxas` says that it makes `wgmma` instructions wait for each other (C7508, C7510 to C7519).
fn is_serialization(line: &str) -> bool {
    let code = line.split_once("(C").and_then(|(_, rest)| rest.split_once(')')?.0.parse::<u32>().ok());
    code.is_some_and(|code| code == 7508 || (7510..=7519).contains(&code))
        || line.contains("wgmma.mma_async instructions are serialized")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ptxas_says_is_read() {
        let report = Report::read(include_str!("samples/ptxas.txt")).unwrap();
        let Report { registers, barriers, static_shared, stack, spill_stores, spill_loads, serialized } =
            report;
        assert_eq!((registers, barriers, static_shared), (255, 2, 1024));
        assert_eq!((stack, spill_stores, spill_loads), (1680, 148, 140));
        assert_eq!(serialized.len(), 1);
        assert!(Report::read("ptxas info : 0 bytes gmem").is_err());
    }

    #[test]
    fn serialisation_is_known_by_its_code_or_its_words() {
        assert!(is_serialization("ptxas info    : (C7519) warpgroup.arrive is injected"));
        assert!(is_serialization("… wgmma.mma_async instructions are serialized due to …"));
        assert!(!is_serialization("ptxas info    : (C7509) something else"));
        assert!(!is_serialization("ptxas info    : Used 24 registers, used 1 barriers"));
    }

    #[test]
    fn columns_count_what_they_say() {
        let lines = [
            "LDG.E.128 R0",
            "LDG.E.U16 R0",
            "LDGSTS.E.BYPASS.128 [R1]",
            "STG.E.64 R0",
            "REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU [R2]",
            "REDUX.MAX UR5",
            "HGMMA.64x128x16.F32.BF16 R0",
            "UTCHMMA R0",
            "HMMA.16816.F32.BF16 R0",
            "UTMALDG.2D R0",
            "LDSM.16.MT88.4 R0",
            "STSM.16.M88.4 [R0]",
            "SHFL.BFLY R0",
            "BAR.SYNC.DEFER_BLOCKING 0x0",
            "LDL.LU R0",
            "STL R0",
            "BRA R0",
        ];
        let text: String = lines.iter().map(|line| format!("/*0000*/ {line} ;\n")).collect();
        let ptxas = Report { registers: 24, static_shared: 16, ..Report::default() };
        let measured =
            Measured { threads: 256, dynamic_shared: 1024, ptxas, sass: Instructions::of_sass(&text) };
        let counts: Vec<(&str, u64)> = COLUMNS
            .iter()
            .map(|column| (column.head, (column.of)(&measured)))
            .filter(|(_, n)| *n > 0)
            .collect();
        let expected = [
            ("threads", 256),
            ("registers", 24),
            ("shared", 1040),
            ("SASS", 17),
            ("GMMA", 2),
            ("MMA", 1),
            ("UTMALDG", 1),
            ("LDGSTS", 1),
            ("LDSM", 1),
            ("STSM", 1),
            ("LDG 128", 1),
            ("LDG <", 1),
            ("STG <", 1),
            ("RED", 1),
            ("SHFL", 1),
            ("BAR", 1),
            ("LDL/STL", 2),
        ];
        assert_eq!(counts, expected);
    }
}
