//! Feature `serde`: the types of the crate as data.
//!
//! What has a notation is its text, the same in files, in tests and on the screen; the rest is a small record.
//! Reading goes through the constructors, so that nothing can be read that could not be made.

use crate::linear::{BitMatrix, Dim, Group, LinearLayout};
use crate::symbolic::{Expr, ExprTuple, SymbolicLayout};
use crate::{HostTensorDescriptor, IntTuple, Layout, Swizzle, SwizzledLayout, TensorLayout, View};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

macro_rules! as_text {
    ($($type:ty),+) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    )+};
}
as_text!(IntTuple, Layout, Swizzle, SwizzledLayout, View, Expr, ExprTuple, SymbolicLayout, TensorLayout);

#[derive(Serialize, Deserialize)]
struct DescriptorRecord {
    lengths: Vec<i64>,
    strides: Vec<i64>,
    layout: TensorLayout,
}

impl Serialize for HostTensorDescriptor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (lengths, strides) = (self.lengths().to_vec(), self.strides().to_vec());
        DescriptorRecord { lengths, strides, layout: self.layout() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HostTensorDescriptor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let DescriptorRecord { lengths, strides, layout } = DescriptorRecord::deserialize(deserializer)?;
        HostTensorDescriptor::with_strides(&lengths, &strides, layout).map_err(D::Error::custom)
    }
}

/// Dimensions with their bits, by the name that they print, and the images of the single input bits.
#[derive(Serialize, Deserialize)]
struct LinearRecord {
    inputs: Vec<(String, u32)>,
    outputs: Vec<(String, u32)>,
    bases: Vec<u64>,
}

impl Serialize for LinearLayout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named =
            |groups: &[Group]| groups.iter().map(|group| (group.dim.to_string(), group.bits)).collect();
        let (inputs, outputs) = (named(self.inputs()), named(self.outputs()));
        LinearRecord { inputs, outputs, bases: self.matrix().columns().to_vec() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LinearLayout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let LinearRecord { inputs, outputs, bases } = LinearRecord::deserialize(deserializer)?;
        let group = |(name, bits): (String, u32)| dim(&name).map(|dim| Group { dim, bits });
        let groups = |named: Vec<(String, u32)>| named.into_iter().map(group).collect::<Option<Vec<Group>>>();
        let (Some(inputs), Some(outputs)) = (groups(inputs), groups(outputs)) else {
            return Err(D::Error::custom(
                "a dimension is `register`, `lane`, `warp`, `block`, `offset` or `axis0`",
            ));
        };
        let rows = outputs.iter().fold(0u32, |rows, group| rows.saturating_add(group.bits));
        BitMatrix::new(rows, &bases)
            .and_then(|matrix| LinearLayout::from_matrix(&inputs, &outputs, matrix))
            .map_err(D::Error::custom)
    }
}

fn dim(name: &str) -> Option<Dim> {
    let fixed = [Dim::Register, Dim::Lane, Dim::Warp, Dim::Block, Dim::Offset];
    let axis = || name.strip_prefix("axis")?.parse().ok().map(Dim::Axis);
    fixed.into_iter().find(|dim| dim.to_string() == name).or_else(axis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::{MatrixShape, Operand, mma_sync};
    use crate::{Fill, Movement};
    use alloc::format;

    fn round_trip<T: Serialize + for<'de> Deserialize<'de> + PartialEq + core::fmt::Debug>(
        value: T,
    ) -> String {
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(serde_json::from_str::<T>(&text).unwrap(), value);
        text
    }

    #[test]
    fn everything_reads_back_as_it_was_written() {
        let padded =
            View::row_major(&[4, 6]).unwrap().pad_with(&[Some((1, 0)), None], Fill::from(0.5)).unwrap();
        let accumulator = mma_sync(MatrixShape { m: 16, n: 8, k: 16 }, 16, Operand::Accumulator).unwrap();
        let texts = [
            round_trip("(4,(2,2)):(1,(4,8))".parse::<Layout>().unwrap()),
            round_trip("Sw<3,4,3> o 16 o (8,64):(64,1)".parse::<SwizzledLayout>().unwrap()),
            round_trip(padded),
            round_trip(View::filled(&[], Fill::from(1)).unwrap()),
            round_trip(SymbolicLayout::row_major(("m", "k")).unwrap()),
            round_trip(HostTensorDescriptor::new(&[4, 3], TensorLayout::ColumnMajor).unwrap()),
            round_trip(HostTensorDescriptor::new(&[2, 3, 4, 5], "NHWC".parse().unwrap()).unwrap()),
            round_trip(accumulator),
        ];
        insta::assert_snapshot!("data", texts.join("\n"));
    }

    #[test]
    fn what_cannot_be_made_cannot_be_read() {
        assert!(serde_json::from_str::<Layout>("\"(4,2):(1)\"").is_err());
        assert!(serde_json::from_str::<Swizzle>("\"Sw<3,0,1>\"").is_err());
        assert!(serde_json::from_str::<View>("\"4:1 + 0 within (4) at (1)\"").is_err());
        let overlapping = "{\"lengths\":[4,3],\"strides\":[1,1],\"layout\":\"row\"}";
        let error = serde_json::from_str::<HostTensorDescriptor>(overlapping).unwrap_err();
        assert!(
            format!("{error}").starts_with("stride 1 of axis 0 is less than what axis 1 spans"),
            "{error}"
        );
        let wide = "{\"inputs\":[[\"lane\",2]],\"outputs\":[[\"axis0\",1]],\"bases\":[1,2]}";
        assert!(serde_json::from_str::<LinearLayout>(wide).is_err());
    }
}
