//! Tensors and movements in the text form: what [`super::parse_types`] and [`super::parse_ops`] ask for.

use super::parse::{Parsed, Parser};
use super::parse_ops::{Head, HeadOp};
use crate::dim::Dim;
use crate::ops::Op;
use crate::types::TensorType;
use crate::view::requirement::Rule;
use crate::view::{Requirement, Strided, TensorMovement};

impl Parser {
    /// `d x d x elem`, then its layout where it has one; and whether a comma after it was read.
    pub(super) fn tensor(&mut self, mutable: bool) -> Parsed<(TensorType, bool)> {
        let (extents, elem) = self.product()?;
        let mut tensor = TensorType::dense(extents, elem, mutable);
        let mut comma = self.accept(',');
        if comma && self.accept_word("strided") {
            tensor.layout = Some(Box::new(self.strided(tensor.extents.len())?));
            comma = self.accept(',');
        }
        Ok((tensor, comma))
    }

    fn strided(&mut self, rank: usize) -> Parsed<Strided> {
        let strides = self.list('[', ']', Self::dim)?;
        let offset = if self.accept_word("offset") { self.dim()? } else { Dim::from(0) };
        let windows = if self.accept_word("within") {
            self.list('[', ']', |parser| parser.list('[', ']', Self::pair))?
        } else {
            vec![Vec::new(); rank]
        };
        if strides.len() != rank || windows.len() != rank {
            return self
                .error(format!("the layout of a tensor of rank {rank} has {rank} strides and windows"));
        }
        Ok(Strided { strides, offset, windows })
    }

    fn pair(&mut self) -> Parsed<(Dim, Dim)> {
        self.punct('(')?;
        let first = self.dim()?;
        self.punct(',')?;
        let second = self.dim()?;
        self.punct(')')?;
        Ok((first, second))
    }

    pub(super) fn view_head(&mut self) -> Parsed<Head> {
        let mut operands = vec![self.value()?];
        let movement = self.movement()?;
        if matches!(movement, TensorMovement::Select { .. }) {
            self.keyword("at")?;
            operands.push(self.value()?);
        }
        Ok(Head { op: HeadOp::Ready(Op::View(movement)), operands })
    }

    fn axis_number(&mut self) -> Parsed<usize> {
        self.unsigned("an axis").map(|axis| axis as usize)
    }

    fn movement(&mut self) -> Parsed<TensorMovement> {
        let position = self.position;
        let name = self.word("a movement")?;
        Ok(match name.as_str() {
            "permute" => TensorMovement::Permute(self.list('[', ']', Self::axis_number)?),
            "flip" => TensorMovement::Flip(self.list('[', ']', Self::axis_number)?),
            "shrink" => TensorMovement::Shrink(self.list('[', ']', Self::pair)?),
            "pad" => TensorMovement::Pad(self.list('[', ']', Self::pair)?),
            "shift" => TensorMovement::Shift { axis: self.axis_number()?, by: self.after("by")? },
            "step" => TensorMovement::Step { axis: self.axis_number()?, step: self.after("by")? },
            "expand" => TensorMovement::Expand(self.list('[', ']', Self::dim)?),
            "unsqueeze" => TensorMovement::Unsqueeze(self.axis_number()?),
            "squeeze" => TensorMovement::Squeeze(self.axis_number()?),
            "unflatten" => {
                let axis = self.axis_number()?;
                TensorMovement::Unflatten { axis, extents: self.list('[', ']', Self::dim)? }
            }
            "flatten" => {
                let start = self.axis_number()?;
                self.keyword("to")?;
                TensorMovement::Flatten { start, end: self.axis_number()? }
            }
            "unfold" => TensorMovement::Unfold {
                axis: self.axis_number()?,
                size: self.after("size")?,
                step: self.after("step")?,
            },
            "select" => TensorMovement::Select { axis: self.axis_number()? },
            "require" => TensorMovement::Require(self.list('[', ']', Self::requirement)?),
            _ => return self.error_at(position, format!("`{name}` is not a movement")),
        })
    }

    /// `window 0 (3, n)`.
    fn requirement(&mut self) -> Parsed<Requirement> {
        let position = self.position;
        let name = self.word("a rule")?;
        let Some(rule) = Rule::named(&name) else {
            return self.error_at(position, format!("`{name}` is no rule of a movement"));
        };
        let axis = self.axis_number()?;
        let (left, right) = self.pair()?;
        Ok(Requirement { axis, rule, left, right })
    }

    fn after(&mut self, keyword: &str) -> Parsed<Dim> {
        self.keyword(keyword)?;
        self.dim()
    }
}
