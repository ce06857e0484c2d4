//! Scans: which reductions have a form that keeps every partial result, and the ways to go along the axis.

use super::Literal;
use super::reduction::{ReduceOp, bounds};
use crate::dtype::DType;

/// How a scan goes along its axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScanMode {
    /// From the last element to the first.
    pub reverse: bool,
    /// An element doesn't count in its own result: the first result is what the scan starts from.
    pub exclusive: bool,
}

impl ScanMode {
    /// Every mode.
    pub const ALL: &[ScanMode] = &[
        ScanMode { reverse: false, exclusive: false },
        ScanMode { reverse: true, exclusive: false },
        ScanMode { reverse: false, exclusive: true },
        ScanMode { reverse: true, exclusive: true },
    ];

    /// What the name of a method or function ends with.
    pub const fn suffix(self) -> &'static str {
        match (self.exclusive, self.reverse) {
            (false, false) => "",
            (false, true) => "_reverse",
            (true, false) => "_exclusive",
            (true, true) => "_exclusive_reverse",
        }
    }

    /// The mode of `stem`, `stem_reverse`, `stem_exclusive` or `stem_exclusive_reverse`.
    pub fn of_name(name: &str, stem: &str) -> Option<ScanMode> {
        let suffix = name.strip_prefix(stem)?;
        ScanMode::ALL.iter().copied().find(|mode| mode.suffix() == suffix)
    }
}

impl ReduceOp {
    /// The name of the method that scans with this reduction, and what it starts from where nothing has come
    /// yet: the sum, product, largest or smallest of no elements. `None` for reductions that have no scan.
    fn scan(self, dtype: DType) -> Option<(&'static str, Literal)> {
        let number = |value: i128| {
            if dtype.is_float() { Literal::Float(value as f64) } else { Literal::Int(value) }
        };
        match self {
            ReduceOp::Sum => Some(("cumsum", number(0))),
            ReduceOp::Prod => Some(("cumprod", number(1))),
            ReduceOp::Max => Some(("cummax", bounds(dtype).0)),
            ReduceOp::Min => Some(("cummin", bounds(dtype).1)),
            _ => None,
        }
    }

    /// The method that scans with this reduction.
    pub fn scan_method(self) -> Option<&'static str> {
        self.scan(DType::I32).map(|(name, _)| name)
    }

    /// The scan that a kernel calls by this method.
    pub fn from_scan_method(name: &str) -> Option<(ReduceOp, ScanMode)> {
        ReduceOp::ALL.iter().find_map(|&op| Some((op, ScanMode::of_name(name, op.scan_method()?)?)))
    }

    /// What a scan starts from: where an element counts in its own result, what changes nothing; else the
    /// sum, product, largest or smallest of no elements. Called only on reductions that have a scan.
    pub fn scan_start(self, dtype: DType, mode: ScanMode) -> Literal {
        match self.scan(dtype) {
            Some((_, nothing)) if mode.exclusive => nothing,
            _ => self.identity(dtype),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_name_their_scan() {
        let exclusive = ScanMode { reverse: false, exclusive: true };
        assert_eq!(ReduceOp::from_scan_method("cumsum_exclusive"), Some((ReduceOp::Sum, exclusive)));
        assert_eq!(ReduceOp::from_scan_method("cummin"), Some((ReduceOp::Min, ScanMode::default())));
        assert_eq!(ReduceOp::from_scan_method("cumsum_backwards"), None);
        assert_eq!(ReduceOp::from_scan_method("cumany"), None);
    }

    #[test]
    fn an_exclusive_scan_starts_from_what_nothing_gives() {
        let exclusive = ScanMode { reverse: false, exclusive: true };
        let start = |op: ReduceOp, dtype| op.scan_start(dtype, exclusive);
        assert_eq!(start(ReduceOp::Sum, DType::F32), Literal::Float(0.0));
        assert_eq!(start(ReduceOp::Prod, DType::U8), Literal::Int(1));
        assert_eq!(start(ReduceOp::Max, DType::F32), Literal::Float(f64::NEG_INFINITY));
        assert_eq!(start(ReduceOp::Min, DType::I8), Literal::Int(127));
    }
}
