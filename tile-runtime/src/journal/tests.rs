//! Who hears what is told, with a subscriber and without.

use super::*;
use crate::launch::{Candidate, KernelDef};
use crate::{Launch, Tensor};
use std::fmt::Write as _;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes down every event and span of ours.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<String>>);

impl Recorder {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

struct Fields<'s>(&'s mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut text = self.0.lock().unwrap();
        text.push_str(attributes.metadata().name());
        attributes.record(&mut Fields(&mut text));
        text.push('\n');
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = self.0.lock().unwrap();
        let _ = write!(text, "{}:", event.metadata().level());
        event.record(&mut Fields(&mut text));
        text.push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The events of some code, and its result.
pub(crate) fn events<R>(code: impl FnOnce() -> R) -> (String, R) {
    let recorder = Recorder::default();
    let result = tracing::subscriber::with_default(recorder.clone(), code);
    (recorder.text(), result)
}

static KERNEL: KernelDef = KernelDef::new(
    "ones",
    "kernel @ones(%y: mut tensor<n x f32>) {\n  %v = partition %y [4] : mut partition<n x f32, [4]>\n  \
     %0 = constant 1.0 : f32\n  %t = splat %0 : tile<4 x f32>\n  store_masked %v, %t\n}\n",
    &[],
);

fn launch_on(device: &Device) {
    let mut y = Tensor::<f32>::zeros(device, [9]).unwrap();
    Launch::new(&KERNEL).reference(|_| {}).tensor_mut("y", &mut y).launch().unwrap();
}

/// What a process does that runs this test alone, with variables of the environment: the lines of the runtime's that it
/// writes to standard error.
pub(crate) fn in_process(test: &str, variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]);
    let output = child.env(CHILD, "1").env_remove("TILE_LOG").envs(variables.iter().copied()).output();
    let output = output.unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stdout));
    told.lines().filter(|line| line.starts_with("tile")).map(|line| line.to_owned() + "\n").collect()
}

/// Whether this is a process of [`in_process`].
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Set in a process of these tests.
const CHILD: &str = "JOURNAL_TEST_CHILD";

/// Programs often read their settings, and warm their kernels, before they install a subscriber; and `set_global_default`,
/// which takes one only, is what they unwrap.
#[test]
#[cfg_attr(miri, ignore = "it starts a process")]
fn a_subscriber_is_installed_after_a_launch() {
    if !is_child() {
        let told =
            in_process("journal::tests::a_subscriber_is_installed_after_a_launch", &[("TILE_LOG", "debug")]);
        assert_eq!(told, "tile debug: launch kernel=ones instance= device=\"reference\" blocks=3\n");
        return;
    }
    launch_on(&Device::reference());
    let recorder = Recorder::default();
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    launch_on(&Device::reference());
    assert_eq!(recorder.text(), "DEBUG: launch kernel=ones instance= device=\"reference\" blocks=3\n");
}

/// What is told unasked is an event where the program takes those, and else a line, unless it isn't wanted.
#[test]
#[cfg_attr(miri, ignore = "it starts processes")]
fn what_is_told_unasked_goes_where_the_program_wants_it() {
    const PROBLEM: &str =
        "TILE_LOG_BYTES is `many`, which isn't a number of bytes such as 64K or 4M; it counts as not set";
    if is_child() {
        let (told, _) = match std::env::var_os("JOURNAL_TEST_EVENTS") {
            Some(_) => events(|| crate::messages::empty(None)),
            None => (String::new(), crate::messages::empty(None)),
        };
        let expected = std::env::var_os("JOURNAL_TEST_EVENTS").map(|_| format!("WARN: {PROBLEM}\n"));
        assert_eq!(told, expected.unwrap_or_default());
        return;
    }
    let run = |more: &[(&str, &str)]| {
        let variables: Vec<_> = [("TILE_LOG_BYTES", "many")].iter().chain(more).copied().collect();
        in_process("journal::tests::what_is_told_unasked_goes_where_the_program_wants_it", &variables)
    };
    let line = format!("tile: {PROBLEM}\n");
    assert_eq!(run(&[]), line);
    assert_eq!(run(&[("TILE_LOG", "warn")]), line);
    assert_eq!(run(&[("TILE_LOG", "off")]), "");
    for log in ["debug", "off"] {
        assert_eq!(run(&[("JOURNAL_TEST_EVENTS", "1"), ("TILE_LOG", log)]), "", "the program has it");
    }
}

/// Whoever asks where code came from is told so of every device.
#[cfg(feature = "jit")]
#[test]
fn code_for_a_simulated_gpu_is_told_of_as_others() {
    let device = Device::simulated("sm_80").unwrap();
    let (told, ()) = events(|| launch_on(&device));
    let begin = "DEBUG: launch kernel=ones instance= device=\"simulated:sm_80\" blocks=3\n\
                 code kernel=ones instance= target=\"simulated:sm_80\" variant=\"general\"\n\
                 INFO: origin=\"compiled\" milliseconds=";
    assert!(told.starts_with(begin) && told.lines().count() == 3, "{told}");
}

/// Does something when it is told of something.
struct Then<F>(F, Arc<Mutex<usize>>);

impl<F: Fn() + 'static> Subscriber for Then<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        (self.0)();
        *self.1.lock().unwrap() += 1;
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// How often some code tells somebody who does something then; what that would be told of is a line, because `tracing` gives
/// it to nobody.
pub(crate) fn told_who_does(
    then: impl Fn() + Send + Sync + 'static,
    code: impl FnOnce() + Send + 'static,
) -> usize {
    let (ends, is_over) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let count = Arc::default();
        tracing::subscriber::with_default(Then(then, Arc::clone(&count)), code);
        ends.send(*count.lock().unwrap())
    });
    is_over.recv_timeout(std::time::Duration::from_secs(60)).expect("it doesn't wait for itself")
}

/// Nothing is locked, nor half made, while somebody is told that a variable makes no sense.
#[test]
#[cfg_attr(miri, ignore = "it starts processes")]
fn who_is_told_of_a_variable_may_use_the_device() {
    use crate::cpu;
    if !is_child() {
        let variables = [("TILE_THREADS", "many"), ("TILE_PIN", "perhaps"), ("TILE_CPU_LEVEL", "best")];
        for first in ["threads", "levels", "best"] {
            let variables = [&variables[..], &[("JOURNAL_TEST_FIRST", first)]].concat();
            in_process("journal::tests::who_is_told_of_a_variable_may_use_the_device", &variables);
        }
        return;
    }
    let chooses = || {
        static CANDIDATES: [Candidate; 1] = [&[]];
        let mut y = Tensor::<f32>::zeros(&Device::cpu(), [9]).unwrap();
        Launch::choosing(&KERNEL, &CANDIDATES).tensor_mut("y", &mut y).instance().unwrap();
    };
    let uses = move || {
        assert!(cpu::threads() > 0 && cpu::levels::asked().is_none());
        chooses();
    };
    let first = move || match std::env::var("JOURNAL_TEST_FIRST").as_deref() {
        Ok("threads") => drop(cpu::threads()),
        Ok("levels") => drop(cpu::levels::asked()),
        _ => chooses(),
    };
    assert_eq!(told_who_does(uses, first), 1);
}
