//! Compiled artifacts on disk, so that an unchanged kernel isn't compiled again.
//!
//! A file is named by the hash of its key and holds the key itself, the artifact and a checksum. A file that
//! is cut short, altered or not ours is reported as damaged and made anew: it never becomes code. Files are
//! written beside their place and renamed, so readers and writers of several processes see whole files only.

use crate::artifact::{Artifact, Code};
use crate::checksum::checksum;
use crate::{Error, Options, compile, compiler_version};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tile_ir::abi::Launch;
use tile_ir::tensor_map::TensorMap;
use tile_ir::{Instance, TargetDesc, text};

/// What a file begins with, and its key as well: where files take another form, those of the old one aren't found.
const MAGIC: &str = "tile-art-4";

/// A folder of artifacts.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// An artifact, and what happened on the way.
#[derive(Debug)]
pub struct Cached {
    /// The artifact.
    pub artifact: Artifact,
    /// Whether it was on disk.
    pub hit: bool,
    /// What a user should hear of: a damaged file, or a folder that can't be written.
    pub warning: Option<String>,
}

impl Cache {
    /// A cache in this folder, which is made when first written to.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into() }
    }

    /// The artifact of an instance, from disk or compiled now.
    ///
    /// # Errors
    /// [`Error`] where the kernel can't be compiled. Trouble with the cache is a warning.
    pub fn compile(
        &self,
        instance: &Instance,
        target: &TargetDesc,
        options: &Options,
    ) -> Result<Cached, Error> {
        let key = key(instance, target, options);
        let path = self.path(&key);
        let mut warning = match read(&path, &key) {
            Ok(Some(artifact)) => return Ok(Cached { artifact, hit: true, warning: None }),
            Ok(None) => None,
            Err(reason) => Some(format!("{} is damaged ({reason}) and was made anew", path.display())),
        };
        let artifact = compile(instance, target, options)?;
        if let Err(error) = self.write(&path, &key, &artifact) {
            warning = Some(format!("{} can't be written: {error}", path.display()));
        }
        Ok(Cached { artifact, hit: false, warning })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{:016x}.tile", checksum(key.bytes())))
    }

    fn write(&self, path: &Path, key: &str, artifact: &Artifact) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        fs::write(&temporary, encode(key, artifact))?;
        fs::rename(&temporary, path)
    }
}

/// Everything that the code depends on.
fn key(instance: &Instance, target: &TargetDesc, options: &Options) -> String {
    let host = if options.cpu == crate::CpuLevel::Host { crate::llvm::host_name() } else { String::new() };
    let compiler = format!("{} {}", compiler_version(), env!("TILE_CODEGEN_SOURCES"));
    format!("{MAGIC} {compiler}\n{target} {options:?} {host}\n{}", text::print(instance))
}

fn encode(key: &str, artifact: &Artifact) -> Vec<u8> {
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

/// Reads a file; `None` where there is none or it is of another key with the same hash.
fn read(path: &Path, key: &str) -> Result<Option<Artifact>, String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or("it is too short")?;
    if checksum(body.iter().copied()) != u64::from_le_bytes(*sum) {
        return Err("its checksum is wrong".to_owned());
    }
    decode(body, key)
}

fn decode(body: &[u8], key: &str) -> Result<Option<Artifact>, String> {
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
    use tile_ir::{specialize, verify};

    fn instance() -> Instance {
        let source = "kernel @k(%y: mut tensor<n x f32>) {\n%v = partition %y [4] : mut partition<n x f32, [4]>\n%0 = constant 1.0 : f32\n%t = splat %0 : tile<4 x f32>\nstore_masked %v, %t\n}";
        specialize(&verify(text::parse(source).unwrap()).unwrap(), &[]).unwrap()
    }

    fn cache(name: &str) -> Cache {
        let folder = std::env::temp_dir().join(format!("tile-cache-test-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Cache::new(folder)
    }

    #[test]
    fn a_second_compilation_is_a_hit() {
        let (cache, options) = (cache("hit"), Options::default());
        let first = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap();
        let second = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap();
        assert!(!first.hit && second.hit);
        assert_eq!(first.artifact, second.artifact);
        let other = Options { symbol: Some("other".into()), ..options };
        assert!(!cache.compile(&instance(), TargetDesc::cpu(), &other).unwrap().hit);
    }

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
            },
            tensor_maps: vec![
                map("argument 0 : bf16 offset 0 [k stride 1 tile 64, m stride k tile 128] swizzle 128"),
                map("argument 2 : f32 offset n - 8 [8 stride 1 tile 8] swizzle 0"),
            ],
        };
        let bytes = encode("key", &artifact);
        let body = bytes.split_last_chunk::<8>().unwrap().0;
        assert_eq!(decode(body, "key"), Ok(Some(artifact)));
        assert_eq!(decode(&body[..body.len() - 3], "key"), Err("it ends early".to_owned()));
    }

    #[test]
    fn damaged_files_are_reported_and_made_anew() {
        let (cache, options) = (cache("damage"), Options::default());
        let good = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap().artifact;
        let path = cache.path(&key(&instance(), TargetDesc::cpu(), &options));
        let bytes = fs::read(&path).unwrap();
        let flipped = {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        };
        for damaged in
            [bytes[..bytes.len() - 1].to_vec(), bytes[..20].to_vec(), Vec::new(), flipped, vec![7; 500]]
        {
            fs::write(&path, damaged).unwrap();
            let again = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap();
            assert!(!again.hit && again.warning.unwrap().contains("damaged"));
            assert_eq!(again.artifact, good);
            assert!(cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap().hit);
        }
    }
}
