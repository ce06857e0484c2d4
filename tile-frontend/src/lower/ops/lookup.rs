//! Tables: arrays of constants that tiles of integers are looked up in, and tiles made of them.

use crate::lower::functions::calls::Arguments;
use crate::lower::{Lowered, Lowering, kind};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::ExprMethodCall;
use tile_ir::ops::Literal;
use tile_ir::{DType, Dim, Elem, Op, ValueId};

/// An array of constants.
struct Table {
    numbers: Vec<Literal>,
    /// What float literals among them are in f32, should that be their format.
    singles: Vec<Option<f32>>,
    elem: Elem,
}

impl Lowering {
    /// `x.lookup(TABLE)`.
    pub(in crate::lower) fn lookup(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let arguments = self.arguments("lookup", &call.args, 1, "x.lookup(TABLE)", call.span())?;
        let table = self.table(&arguments)?;
        self.emit_lookup(table, tile, call.span(), call.receiver.span()).map(Val::Data)
    }

    fn emit_lookup(&mut self, table: Table, places: ValueId, span: Span, place: Span) -> Lowered<ValueId> {
        let Table { numbers, singles, elem } = table;
        let found = self.emit_one(Op::Lookup { table: numbers, elem }, &[places], span, &[place])?;
        self.table_singles.insert(found, singles);
        Ok(found)
    }

    /// `Tile::from_array(TABLE)`: what is at each position of the table.
    pub(in crate::lower) fn tile_of_array(
        &mut self,
        arguments: &Arguments,
        elem: &Elem,
        span: Span,
    ) -> Lowered<Val> {
        let table = self.table(arguments)?;
        if !self.elements.unify(elem, &table.elem) {
            let [wanted, found] = [elem, &table.elem].map(|elem| self.elements.resolve(elem));
            let message = format!("a tile of {} can't be made of numbers of {}", wanted, found);
            return self.error(arguments.spans[0], message, "convert the tile with `.cast()`");
        }
        let positions =
            Op::Iota { shape: vec![Dim::from(table.numbers.len() as i64)], axis: 0, elem: DType::I32.into() };
        let positions = self.emit_one(positions, &[], span, &arguments.spans)?;
        self.emit_lookup(table, positions, span, arguments.spans[0]).map(Val::Data)
    }

    /// The numbers of the array that is the one argument.
    fn table(&mut self, arguments: &Arguments) -> Lowered<Table> {
        let (value, span) = (&arguments.values[0], arguments.spans[0]);
        let values = match value {
            Val::Poison => return Err(crate::lower::Reported),
            Val::List(values) if !values.is_empty() => self.of_one_type(values.clone(), span)?,
            other => {
                let message = format!("a table is an array of constants, not {}", kind(other));
                let help = "write `const TABLE: [f32; 4] = […];` in the kernel or its `#[tile_kernels]` module; a tile is \
                            looked up by `tile.gather(indices, axis)`, a tensor by `tensor.gather([indices])`";
                return self.error(span, message, help);
            }
        };
        let elem = match &values[0] {
            Val::Data(number) => self.elem(*number),
            Val::Dim(_) => DType::Index.into(),
            literal => literal.shared().cloned().unwrap_or_else(|| self.elements.unknown()),
        };
        if self.elements.resolve(&elem) == DType::Index.into() {
            let help = "write `[i32; N]`, or another format of tiles";
            return self.error(span, "a tile has no elements of usize", help);
        }
        let numbers = values.iter().map(|value| self.constant_number(value, &elem, span));
        let (numbers, singles) = numbers.collect::<Lowered<Vec<_>>>()?.into_iter().unzip();
        Ok(Table { numbers, singles, elem })
    }

    fn constant_number(&mut self, value: &Val, elem: &Elem, span: Span) -> Lowered<(Literal, Option<f32>)> {
        let number = self.number(value, elem, "a number of the table", span)?;
        match self.kernel.constant(number) {
            Some(value) => Ok((value, self.singles.get(&number).copied())),
            None => {
                let help = "a table has literals and constants; numbers that are computed are joined as tiles, \
                            `cat([Tile::full([1], a), Tile::full([1], b)], 0)`";
                self.error(span, "a number of the table is computed in the kernel", help)
            }
        }
    }
}
