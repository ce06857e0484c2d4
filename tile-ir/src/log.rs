//! The log: memory that a launch gives to a kernel that prints or asserts, and what lies in it.
//!
//! # Layout
//!
//! 64-bit words: a header of [`HEADER_WORDS`], then records.
//!
//! | word | holds |
//! |---|---|
//! | [`CURSOR`] | how many words of records were reserved, advanced atomically |
//! | [`CAPACITY`] | how many words of records fit, which the launch sets |
//! | [`FAILURES`] | how many assertions failed, advanced atomically |
//!
//! A record is one more than the number of its **site** (so that memory that nobody wrote isn't a record), the
//! block's number, for an assertion the row-major position of the first element that is false, then the
//! values in order: a word per element, its stored bits lowest, tiles row-major. Everything else about a site
//! (text, formats, shapes, place) both sides know from the IR. A record that doesn't fit is not written and
//! the cursor goes on, so that everything after it doesn't fit either, and the host knows how much is lost.
//!
//! A failed assertion doesn't stop a kernel: threads that wait for each other can't leave alone. The launch
//! fails afterwards, and what it has written is unspecified.

use crate::array::{Array, Elements, wrap_int};
use crate::dtype::DType;
use crate::interp::extents;
use crate::kernel::{OpData, ValueId};
use crate::loc::Loc;
use crate::message::Message;
use crate::ops::Op;
use crate::round::decode as decode_float;
use crate::specialize::Instance;
use tile_layout::multi_index;

/// Words before the first record.
pub const HEADER_WORDS: usize = 3;
/// The word that counts reserved words.
pub const CURSOR: usize = 0;
/// The word that holds the capacity.
pub const CAPACITY: usize = 1;
/// The word that counts failed assertions.
pub const FAILURES: usize = 2;
/// Words of a record before its values: site and block.
pub const RECORD_WORDS: u64 = 2;

/// A `print` or `assert` of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its number in the kernel.
    pub number: u32,
    /// The shape of the condition, if it is an assertion.
    pub condition: Option<Vec<usize>>,
    /// The text.
    pub message: Message,
    /// Format and shape of each argument.
    pub arguments: Vec<(DType, Vec<usize>)>,
    /// Place in the user's Rust.
    pub loc: Loc,
}

/// Something that a kernel said.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The site.
    pub site: u32,
    /// The block's number in the grid, row-major.
    pub block: u64,
    /// The position of the first element that is false, of an assertion that failed.
    pub position: Option<u64>,
    /// The arguments.
    pub values: Vec<Array>,
}

/// What a log holds.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Contents {
    /// In the order of records.
    pub events: Vec<Event>,
    /// Words of records that didn't fit.
    pub lost_words: u64,
    /// How many assertions failed, recorded or not.
    pub failures: u64,
}

impl Site {
    /// What an op prints or asserts; `None` for other ops.
    pub fn of(instance: &Instance, data: &OpData) -> Option<Site> {
        let (Op::Print { site, message } | Op::Assert { site, message }) = &data.op else { return None };
        let is_assertion = matches!(data.op, Op::Assert { .. });
        let shape =
            |value: ValueId| instance.ty(value).as_tile().map_or_else(Vec::new, |tile| extents(&tile.shape));
        let dtype =
            |value: ValueId| instance.ty(value).elem().known().expect("an instance has no dtype parameters");
        let arguments = data.operands.iter().skip(usize::from(is_assertion));
        Some(Site {
            number: *site,
            condition: is_assertion.then(|| shape(data.operands[0])),
            message: message.clone(),
            arguments: arguments.map(|&value| (dtype(value), shape(value))).collect(),
            loc: data.loc,
        })
    }

    /// Words before the values.
    pub fn head_words(&self) -> u64 {
        RECORD_WORDS + u64::from(self.condition.is_some())
    }

    /// Words of a record.
    pub fn words(&self) -> u64 {
        let values = self.arguments.iter().map(|(_, shape)| shape.iter().product::<usize>() as u64);
        self.head_words() + values.sum::<u64>()
    }

    /// What an event of this site says.
    pub fn text(&self, event: &Event) -> String {
        let text = self.message.render(&event.values);
        match (&self.condition, event.position) {
            (Some(shape), Some(position)) => failure_text(&text, shape, position as usize),
            _ => text,
        }
    }

    fn read(&self, record: &[u64]) -> Event {
        let (head, mut words) = record.split_at(self.head_words() as usize);
        let values = self.arguments.iter().map(|(dtype, shape)| {
            let (value, rest) = words.split_at(shape.iter().product());
            words = rest;
            array(*dtype, shape, value)
        });
        let values = values.collect();
        let position = self.condition.as_ref().map(|_| head[RECORD_WORDS as usize]);
        Event { site: self.number, block: head[1], position, values }
    }
}

/// What a failed assertion says, with the element that is false where the condition is a tile.
pub fn failure_text(message: &str, shape: &[usize], position: usize) -> String {
    if shape.is_empty() {
        return message.to_owned();
    }
    format!("{message} (false at element {:?} of the condition)", multi_index(position, shape))
}

fn array(dtype: DType, shape: &[usize], words: &[u64]) -> Array {
    let elements = if dtype.is_float() {
        Elements::Float(words.iter().map(|&word| decode_float(dtype, word)).collect())
    } else {
        Elements::Int(words.iter().map(|&word| wrap_int(dtype, i128::from(word))).collect())
    };
    Array::new(dtype, shape.to_vec(), elements)
}

/// The sites of an instance.
pub fn sites(instance: &Instance) -> Vec<Site> {
    instance.walk().into_iter().filter_map(|op| Site::of(instance, instance.op(op))).collect()
}

/// An empty log of this many words in all.
pub fn empty(words: usize) -> Vec<u64> {
    let mut log = vec![0; words.max(HEADER_WORDS)];
    begin(&mut log);
    log
}

/// Makes zeros an empty log, which says how many words it has for records.
///
/// # Panics
/// If there are fewer words than [`HEADER_WORDS`].
pub fn begin(zeros: &mut [u64]) {
    zeros[CAPACITY] = (zeros.len() - HEADER_WORDS) as u64;
}

/// Reads a log that a kernel with these sites has written.
pub fn decode(sites: &[Site], log: &[u64]) -> Contents {
    let (header, records) = log.split_at(HEADER_WORDS.min(log.len()));
    let [cursor, _, failures] = *header else { return Contents::default() };
    let (mut events, mut next) = (Vec::new(), 0);
    while let Some(site) = records.get(next).and_then(|&word| site_of(sites, word)) {
        let Some(record) = records.get(next..next + site.words() as usize) else { break };
        events.push(site.read(record));
        next += record.len();
    }
    Contents { events, lost_words: cursor.saturating_sub(next as u64), failures }
}

fn site_of(sites: &[Site], word: u64) -> Option<&Site> {
    let number = word.checked_sub(1)?;
    sites.iter().find(|site| u64::from(site.number) == number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerifiedKernel;

    const SAYS: &str = "\
kernel @says(%y: mut tensor<n x f32>, %s: f16) {
  %v = partition %y [2] : mut partition<n x f32, [2]>
  %0 = constant 0.0 : f32
  %t = load_masked %v pad %0 : tile<2 x f32>
  %z = splat %0 : tile<2 x f32>
  %c = ge %t, %z : tile<2 x bool>
  print 0 \"s = {0}, t = {1:.1}\" %s, %t
  assert 7 \"{0} is negative\" %c, %t
  store_masked %v, %t
}
";

    fn instance() -> Instance {
        Instance::parse(SAYS, &[]).unwrap()
    }

    #[test]
    fn records_are_read_back() {
        let sites = sites(&instance());
        assert_eq!(sites.iter().map(Site::words).collect::<Vec<_>>(), [5, 5]);
        let bits = |value: f32| u64::from(value.to_bits());
        let mut log = empty(HEADER_WORDS + 12);
        // 1.5 in f16 is 0x3e00. The third record, of 5 words, doesn't fit: two words are left.
        let records = [1, 4, 0x3e00, bits(2.0), bits(0.25), 8, 3, 1, bits(1.0), bits(-2.0)];
        log[HEADER_WORDS..HEADER_WORDS + 10].copy_from_slice(&records);
        (log[CURSOR], log[FAILURES]) = (15, 2);
        let contents = decode(&sites, &log);
        assert_eq!((contents.events.len(), contents.lost_words, contents.failures), (2, 5, 2));
        assert_eq!(contents.events[0].block, 4);
        assert_eq!(sites[0].text(&contents.events[0]), "s = 1.5, t = [2.0, 0.2]");
        assert_eq!(
            sites[1].text(&contents.events[1]),
            "[ 1.0, -2.0] is negative (false at element [1] of the condition)"
        );
    }

    #[test]
    fn what_is_no_log_is_empty() {
        let sites = sites(&instance());
        assert_eq!(decode(&sites, &[]), Contents::default());
        assert_eq!(decode(&sites, &[0, 0, 0, 77, u64::MAX]), Contents::default());
        assert_eq!(decode(&sites, &[2, 2, 0, 1, 0]).events, []);
    }

    #[test]
    fn messages_are_verified() {
        let problem = |from: &str, to: &str| {
            let text = SAYS.replacen(from, to, 1);
            assert_ne!(text, SAYS);
            VerifiedKernel::parse(&text).unwrap_err().to_string()
        };
        assert_eq!(problem("assert 7", "assert 0"), "two messages have the site 0");
        assert_eq!(problem("{1:.1}", "{2:.1}"), "the message of `print` names argument 2, but there are 2");
        assert_eq!(
            problem("negative\" %c,", "negative\" %t,"),
            "the condition of `tile_assert!` is tile<2 x f32>, not a bool or a tile of bool"
        );
        assert_eq!(
            problem("%s, %t", "%v, %t"),
            "`tile_println!` shows scalars and tiles, not mut partition<n x f32, [2]>"
        );
        assert_eq!(problem("{0} is", "{} is"), "8:12: every place of a message is numbered: `{0}`");
    }
}
