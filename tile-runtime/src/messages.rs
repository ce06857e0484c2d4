//! What kernels print and assert: the log that a launch gives to compiled code, and where the lines go.

use crate::error::{Error, Result};
use crate::{environment, host, journal};
use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use tile_ir::Instance;
use tile_ir::log::{self, Contents, Event, HEADER_WORDS, Site};
use tile_layout::multi_index;

/// The environment variable that sets the size of logs.
const SIZE_VARIABLE: &str = "TILE_LOG_BYTES";

/// The size of a log that nobody asked otherwise for.
const DEFAULT_BYTES: usize = 1 << 20;

/// Where printed lines go.
pub(crate) type Sink<'a> = Box<dyn FnMut(&str) + Send + 'a>;

/// The sites of a kernel's instance.
pub(crate) struct Sites {
    file: String,
    sites: Vec<Site>,
}

impl Sites {
    pub(crate) fn of(instance: &Instance) -> Sites {
        Sites { file: instance.file.clone(), sites: log::sites(instance) }
    }
}

/// The words of an empty log, of as many bytes as asked for, else as the environment says.
///
/// # Errors
/// [`Error::OutOfMemory`] where there isn't so much memory.
pub(crate) fn empty(bytes: Option<usize>) -> Result<Vec<u64>> {
    let bytes = bytes.or_else(asked).unwrap_or(DEFAULT_BYTES);
    let mut words = host::zeroed_words(HEADER_WORDS + bytes / size_of::<u64>())?;
    log::begin(&mut words);
    Ok(words)
}

/// As many bytes as the environment says.
fn asked() -> Option<usize> {
    let bytes = environment::said(SIZE_VARIABLE, "a number of bytes such as 64K or 4M", environment::bytes)?;
    Some(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Prints what a kernel has said.
///
/// # Errors
/// [`Error::AssertionFailed`], of the first assertion that failed.
pub(crate) fn report(
    kernel: &str,
    sites: &Sites,
    grid: &[usize],
    words: &[u64],
    sink: &mut Option<Sink<'_>>,
) -> Result<()> {
    let contents = log::decode(&sites.sites, words);
    let site = |event: &Event| sites.sites.iter().find(|site| site.number == event.site);
    for event in contents.events.iter().filter(|event| event.position.is_none()) {
        let text = site(event).map(|site| site.text(event)).unwrap_or_default();
        match sink {
            Some(sink) => sink(&text),
            None => println!("{text}"),
        }
    }
    if contents.lost_words > 0 {
        journal::notice(&loss(kernel, &contents, words.len()));
    }
    let failed = |event: &&Event| event.position.is_some();
    let Some((event, site)) =
        contents.events.iter().find(failed).and_then(|event| Some((event, site(event)?)))
    else {
        return unrecorded(kernel, &contents);
    };
    let place = site.loc.in_file(&sites.file);
    let block = multi_index(event.block as usize, grid);
    Err(Error::AssertionFailed { kernel: kernel.to_owned(), block, place, message: site.text(event) })
}

/// An assertion that failed without room to say which.
fn unrecorded(kernel: &str, contents: &Contents) -> Result<()> {
    if contents.failures == 0 {
        return Ok(());
    }
    let problem = format!(
        "{} assertions failed, but what was printed before left no room to say which",
        contents.failures
    );
    Err(Error::LogFull { kernel: kernel.to_owned(), problem })
}

fn loss(kernel: &str, contents: &Contents, words: usize) -> String {
    let bytes = |words: u64| words * size_of::<u64>() as u64;
    format!(
        "kernel `{kernel}` said more than its log of {} bytes holds: {} bytes are lost; make room with \
         `.log_bytes(…)` or {SIZE_VARIABLE}",
        bytes((words - HEADER_WORDS) as u64),
        bytes(contents.lost_words)
    )
}

/// What a block on the reference device has said.
#[derive(Default)]
struct Said {
    /// Lines that were printed, where they are kept instead of shown.
    lines: Option<Vec<String>>,
    /// Place and message of the assertion that the running block failed.
    failure: Option<(String, String)>,
}

thread_local! {
    static SAID: RefCell<Said> = RefCell::default();
}

/// Runs a block on the reference device. Its lines go to the sink, if there is one.
pub(crate) fn in_block<T>(
    sink: &mut Option<Sink<'_>>,
    run: impl FnOnce() -> T,
) -> (T, Option<(String, String)>) {
    let fresh = Said { lines: sink.is_some().then(Vec::new), failure: None };
    // A thread that is about to end prints its lines at once, and a failed assertion is a panic there.
    let Ok(outer) = SAID.try_with(|said| said.replace(fresh)) else { return (run(), None) };
    let result = run();
    let said = SAID.replace(outer);
    if let Some(sink) = sink {
        said.lines.iter().flatten().for_each(|line| sink(line));
    }
    (result, said.failure)
}

/// Prints a line of a kernel's body. `tile_println!` calls this.
pub fn print(line: fmt::Arguments<'_>) {
    let kept = SAID.try_with(|said| match &mut said.borrow_mut().lines {
        Some(lines) => {
            lines.push(line.to_string());
            true
        }
        None => false,
    });
    if !kept.unwrap_or(false) {
        println!("{line}");
    }
}

/// Ends a kernel's body because an assertion doesn't hold. `tile_assert!` calls this.
///
/// # Panics
/// Always; in a launch that is the launch's [`Error::AssertionFailed`].
#[track_caller]
pub fn fail(message: String) -> ! {
    let place = Location::caller().to_string();
    let _ = SAID.try_with(|said| said.borrow_mut().failure = Some((place, message.clone())));
    panic!("assertion failed: {message}")
}
