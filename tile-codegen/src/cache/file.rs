//! A file of the cache: what it begins with, its key, the artifact, and a checksum of all of that.

use crate::artifact::{Artifact, Code};
use crate::checksum::checksum;
use tile_ir::abi::Launch;
use tile_ir::tensor_map::TensorMap;
use tile_ir::text;

/// What a file begins with, and its key as well: where files take another form, those of the old one aren't found.
pub(super) const MAGIC: &str = "tile-art-6";

pub(super) fn encode(key: &str, artifact: &Artifact) -> Vec<u8> {
    let kind = match &artifact.code {
        Code::Object(_) => 0u8,
        Code::Ptx(_) => 1,
        Code::Hsaco(_) => 2,
    };
    let mut bytes = MAGIC.as_bytes().to_vec();
    let fields =
        [key.as_bytes(), artifact.target.as_bytes(), artifact.symbol.as_bytes(), artifact.code.bytes()];
    fields.into_iter().for_each(|field| add_field(&mut bytes, field));
    bytes.push(kind);
    bytes.extend(artifact.launch.threads.to_le_bytes());
    bytes.extend(artifact.launch.shared_bytes.to_le_bytes());
    bytes.extend(artifact.launch.scratch_bytes.to_le_bytes());
    bytes.push(artifact.launch.shares_grid.into());
    bytes.extend(artifact.launch.cluster.to_le_bytes());
    bytes.extend(artifact.launch.blocks_per_tile.to_le_bytes());
    bytes.extend((artifact.tensor_maps.len() as u64).to_le_bytes());
    for map in artifact.tensor_maps.iter().map(ToString::to_string) {
        add_field(&mut bytes, map.as_bytes());
    }
    let sum = checksum(bytes.iter().copied());
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn add_field(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend((field.len() as u64).to_le_bytes());
    bytes.extend(field);
}

/// The artifact in a file; `None` where it is of another key with the same hash.
///
/// # Errors
/// What is wrong with the file.
pub(super) fn decode(bytes: &[u8], key: &str) -> Result<Option<Artifact>, String> {
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or("it is too short")?;
    if checksum(body.iter().copied()) != u64::from_le_bytes(*sum) {
        return Err("its checksum is wrong".to_owned());
    }
    decode_body(body, key)
}

fn decode_body(body: &[u8], key: &str) -> Result<Option<Artifact>, String> {
    let mut reader = Reader { rest: body.strip_prefix(MAGIC.as_bytes()).ok_or("it isn't an artifact")? };
    if reader.field()? != key.as_bytes() {
        return Ok(None);
    }
    let (target, symbol, code) = (reader.text()?, reader.text()?, reader.field()?.to_vec());
    let code = match reader.array::<1>()? {
        [0] => Code::Object(code),
        [1] => Code::Ptx(String::from_utf8(code).map_err(|_| "its PTX isn't text")?),
        [2] => Code::Hsaco(code),
        [kind] => return Err(format!("it holds code of unknown kind {kind}")),
    };
    let launch = Launch {
        threads: u32::from_le_bytes(reader.array()?),
        shared_bytes: u32::from_le_bytes(reader.array()?),
        scratch_bytes: u64::from_le_bytes(reader.array()?),
        shares_grid: reader.array()? == [1],
        cluster: u32::from_le_bytes(reader.array()?),
        blocks_per_tile: u32::from_le_bytes(reader.array()?),
    };
    let maps = u64::from_le_bytes(reader.array()?);
    let tensor_maps = (0..maps).map(|_| reader.tensor_map()).collect::<Result<_, _>>()?;
    Ok(Some(Artifact { target, symbol, code, launch, tensor_maps }))
}

struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or("it ends early")?;
        self.rest = rest;
        Ok(*array)
    }

    fn field(&mut self) -> Result<&'b [u8], String> {
        let length = usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|_| "it ends early")?;
        let (field, rest) = self.rest.split_at_checked(length).ok_or("it ends early")?;
        self.rest = rest;
        Ok(field)
    }

    fn tensor_map(&mut self) -> Result<TensorMap, String> {
        text::parse_tensor_map(&self.text()?).map_err(|error| format!("of a tensor map in it, {error}"))
    }

    fn text(&mut self) -> Result<String, String> {
        String::from_utf8(self.field()?.to_vec()).map_err(|_| "a name in it isn't text".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensor_maps_are_kept() {
        let map = |text| text::parse_tensor_map(text).unwrap();
        let artifact = Artifact {
            target: "sm_90a".to_owned(),
            symbol: "k".to_owned(),
            code: Code::Ptx("text".to_owned()),
            launch: Launch {
                threads: 128,
                shared_bytes: 64,
                scratch_bytes: 0,
                shares_grid: true,
                cluster: 2,
                blocks_per_tile: 2,
            },
            tensor_maps: vec![
                map("argument 0 : bf16 offset 0 [k stride 1 tile 64, m stride k tile 128] swizzle 128"),
                map("argument 2 : f32 offset n - 8 [8 stride 1 tile 8] swizzle 0"),
            ],
        };
        let bytes = encode("key", &artifact);
        assert_eq!(decode(&bytes, "key"), Ok(Some(artifact)));
        assert_eq!(decode(&bytes, "another key"), Ok(None));
        let body = bytes.split_last_chunk::<8>().unwrap().0;
        assert_eq!(decode_body(&body[..body.len() - 3], "key"), Err("it ends early".to_owned()));
    }
}
