//! Loops and branches.

use super::writer::{Entry, Writer, names};
use tile_ir::DType;

impl Writer<'_> {
    /// What a loop carries; at least one value.
    pub(super) fn carried(&mut self) -> Vec<Entry> {
        (0..1 + self.choose(3))
            .map(|_| {
                let scalars = self.choose(4) == 0;
                self.pick(|entry| entry.shape.is_empty() == scalars).unwrap_or_else(|| self.tile())
            })
            .collect()
    }

    /// The same types under new names.
    pub(super) fn fresh(&mut self, like: &[Entry]) -> Vec<Entry> {
        like.iter().map(|entry| Entry { name: self.name(), ..entry.clone() }).collect()
    }

    /// A `while` that ends after at most three iterations, and sooner where an element of a tile says so.
    pub(super) fn while_loop(&mut self) {
        let carried = self.carried();
        let start = self.choose(4);
        let start = self.define(&format!("constant {start}"), &[], DType::I32);
        let limit = self.number(DType::I32, 3);
        let first = self.define(&format!("lt {}, {}", start.name, limit.name), &[], DType::Bool);
        let count = Entry { name: self.name(), shape: Vec::new(), dtype: DType::I32 };
        let (params, results) = (self.fresh(&carried), self.fresh(&carried));
        let counted = Entry { name: self.name(), ..count.clone() };
        let initial = std::iter::once((&count, &start)).chain(params.iter().zip(&carried));
        let pairs: Vec<String> = initial.map(|(p, c)| format!("{} = {}", p.name, c.name)).collect();
        let all: Vec<Entry> = std::iter::once(counted.clone()).chain(results.iter().cloned()).collect();
        let types: Vec<String> = all.iter().map(Entry::ty).collect();
        let (names, carry, types) = (names(&all), pairs.join(", "), types.join(", "));
        self.line(&format!("{names} = while {} carry ({carry}) : {types} {{", first.name));
        let outside = self.enter();
        self.scope.extend(params.iter().cloned());
        let ops = self.choose(5);
        self.region(ops);
        let one = self.number(DType::I32, 1);
        let next = self.define(&format!("add {}, {}", count.name, one.name), &[], DType::I32);
        let mut again = self.define(&format!("lt {}, {}", next.name, limit.name), &[], DType::Bool);
        if self.choose(2) == 0 {
            let stop = self.item();
            again = self.define(&format!("and {}, {}", again.name, stop.name), &[], DType::Bool);
        }
        let yielded: Vec<Entry> = params.iter().map(|param| self.same_type_as(param)).collect();
        let yielded: Vec<Entry> = [again, next].into_iter().chain(yielded).collect();
        self.line(&format!("yield {}", self::names(&yielded)));
        self.leave(outside);
        self.line("}");
        self.scope.extend(results);
    }

    /// One element of some tile: the largest of all.
    pub(super) fn largest(&mut self) -> Entry {
        let tile = self.tile();
        let tile = self.cast(&tile, DType::I32);
        let flat = self.define(&format!("reshape {}", tile.name), &[tile.shape.iter().product()], DType::I32);
        let largest = self.define(&format!("reduce max {} axis 0", flat.name), &[1], DType::I32);
        self.define(&format!("item {}", largest.name), &[], DType::I32)
    }

    /// A condition on an element.
    pub(super) fn item(&mut self) -> Entry {
        let item = self.largest();
        let limit = self.number(DType::I32, 5);
        self.define(&format!("ge {}, {}", item.name, limit.name), &[], DType::Bool)
    }

    /// An end of a loop of few turns, of at most three where it is nested: a number, an element of a tile, or an index.
    fn end(&mut self) -> Entry {
        let end = self.choose(4);
        let end = if self.depth < 2 { [0, 1, 3, 9][end] } else { end };
        let end = self.define(&format!("constant {end}"), &[], DType::Index);
        let found = match self.choose(6) {
            0 => {
                let item = self.largest();
                self.cast(&item, DType::Index)
            }
            1 => self.pick(|entry| entry.dtype == DType::Index).expect("the block's index is in scope"),
            _ => return end,
        };
        self.define(&format!("min {}, {}", found.name, end.name), &[], DType::Index)
    }

    pub(super) fn for_loop(&mut self) {
        let carried = self.carried();
        let start = self.choose(3);
        let start = self.define(&format!("constant {start}"), &[], DType::Index);
        let end = self.end();
        let counter = self.name();
        let (params, results) = (self.fresh(&carried), self.fresh(&carried));
        let pairs: Vec<String> =
            params.iter().zip(&carried).map(|(p, c)| format!("{} = {}", p.name, c.name)).collect();
        let types: Vec<String> = carried.iter().map(Entry::ty).collect();
        self.line(&format!(
            "{} = for {counter} = {} to {} carry ({}) : {} {{",
            names(&results),
            start.name,
            end.name,
            pairs.join(", "),
            types.join(", ")
        ));
        let outside = self.enter();
        self.scope.push(Entry { name: counter, shape: Vec::new(), dtype: DType::Index });
        self.scope.extend(params.iter().cloned());
        let ops = self.choose(5);
        self.region(ops);
        let yielded: Vec<Entry> = params.iter().map(|param| self.same_type_as(param)).collect();
        self.line(&format!("yield {}", names(&yielded)));
        self.leave(outside);
        self.line("}");
        self.scope.extend(results);
    }

    /// What all threads of a block know: where it is, an element of a tile, or some scalar.
    fn condition(&mut self) -> Entry {
        match self.choose(4) {
            0 => return self.item(),
            1 => {
                let found = self.pick(|entry| entry.shape.is_empty() && entry.dtype == DType::Bool);
                if let Some(found) = found {
                    return found;
                }
            }
            _ => {}
        }
        let is_index = |entry: &&Entry| entry.dtype == DType::Index;
        let index = self.scope.iter().find(is_index).expect("the block's index is in scope").clone();
        let limit = self.define("constant 1", &[], DType::Index);
        self.define(&format!("lt {}, {}", index.name, limit.name), &[], DType::Bool)
    }

    pub(super) fn branch(&mut self) {
        let like: Vec<Entry> = (0..1 + self.choose(2)).map(|_| self.tile()).collect();
        let condition = self.condition();
        let results = self.fresh(&like);
        let types: Vec<String> = like.iter().map(Entry::ty).collect();
        self.line(&format!("{} = if {} : {} {{", names(&results), condition.name, types.join(", ")));
        for side in 0..2 {
            let outside = self.enter();
            let ops = self.choose(4);
            self.region(ops);
            let yielded: Vec<Entry> = like.iter().map(|entry| self.same_type_as(entry)).collect();
            self.line(&format!("yield {}", names(&yielded)));
            self.leave(outside);
            self.line(if side == 0 { "} else {" } else { "}" });
        }
        self.scope.extend(results);
    }
}
