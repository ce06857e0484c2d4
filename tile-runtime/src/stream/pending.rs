//! Launches and copies that are going on, and launches as futures.

use super::completion::Completion;
use super::waiting::Ticket;
use super::{Event, Stream};
use crate::device::Kind;
use crate::error::Result;
use crate::launch::Launch;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A launch or a copy on a stream, which borrows its tensors until it is waited for or dropped. Dropped, it goes on: what
/// uses its tensors then waits for it, and [`Stream::synchronize`] tells of its failure.
///
/// What is written can't be looked at before:
///
/// ```compile_fail,E0502
/// # use tile_runtime as tile;
/// use tile::{Launch, Result, Stream, Tensor};
/// fn wrong(launch: fn(&mut Tensor<f32>) -> Launch<'_>, y: &mut Tensor<f32>, stream: &Stream) -> Result<Vec<f32>> {
///     let pending = launch(y).on(stream)?;
///     let early = y.to_vec()?;
///     pending.wait()?;
///     Ok(early)
/// }
/// ```
///
/// After the wait it can:
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Launch, Result, Stream, Tensor};
/// fn right(launch: fn(&mut Tensor<f32>) -> Launch<'_>, y: &mut Tensor<f32>, stream: &Stream) -> Result<Vec<f32>> {
///     let pending = launch(y).on(stream)?;
///     pending.wait()?;
///     y.to_vec()
/// }
/// ```
///
/// Nor can what is read be written, or freed:
///
/// ```compile_fail,E0505
/// # use tile_runtime as tile;
/// use tile::{Launch, Result, Stream, Tensor};
/// fn wrong(launch: fn(&Tensor<f32>) -> Launch<'_>, x: Tensor<f32>, stream: &Stream) -> Result<()> {
///     let pending = launch(&x).on(stream)?;
///     drop(x);
///     pending.wait()
/// }
/// ```
#[must_use = "`wait` or `await` says whether it succeeded; `detach` leaves that to `Stream::synchronize`"]
pub struct Pending<'a> {
    progress: Progress,
    /// Of a task that waits.
    ticket: Option<Ticket>,
    borrowed: PhantomData<&'a mut ()>,
}

enum Progress {
    Done,
    /// Until an event on a stream.
    Event(Event, Stream),
    /// Until a stream has nothing to do: of memory that isn't a tensor's own no uses are noted, so that no event is needed.
    Stream(Stream),
}

impl<'a> Pending<'a> {
    fn new(progress: Progress) -> Pending<'a> {
        Pending { progress, ticket: None, borrowed: PhantomData }
    }

    pub(crate) fn done() -> Pending<'a> {
        Pending::new(Progress::Done)
    }

    pub(crate) fn until(event: Event, stream: &Stream) -> Pending<'a> {
        Pending::new(Progress::Event(event, stream.clone()))
    }

    pub(crate) fn until_idle(stream: &Stream) -> Pending<'a> {
        Pending::new(Progress::Stream(stream.clone()))
    }

    /// Waits until it is done.
    ///
    /// # Errors
    /// What it failed with.
    pub fn wait(self) -> Result<()> {
        match &self.progress {
            Progress::Done => Ok(()),
            Progress::Event(event, _) => event.wait(),
            Progress::Stream(stream) => stream.synchronize(),
        }
    }

    /// Whether it is done.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the device fails.
    pub fn is_done(&self) -> Result<bool> {
        match &self.progress {
            Progress::Done => Ok(true),
            Progress::Event(event, _) => event.is_done(),
            Progress::Stream(stream) => stream.record()?.is_done(),
        }
    }

    /// Lets it go on by itself.
    pub fn detach(self) {}
}

impl Future for Pending<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        if let Progress::Stream(stream) = &this.progress {
            this.progress = match stream.record() {
                Ok(event) => Progress::Event(event, stream.clone()),
                Err(error) => return Poll::Ready(Err(error)),
            };
        }
        let Progress::Event(event, stream) = &this.progress else { return Poll::Ready(Ok(())) };
        let result = match (event.on_host()?, stream.on_gpu()) {
            (Some(completion), _) => poll_host(completion, context.waker(), &mut this.ticket),
            // Whoever polls is woken when the stream comes to the end of what it has now.
            (None, Some(gpu)) => match event.is_done() {
                Ok(false) => gpu.wake(context.waker(), &mut this.ticket).err().map(Err),
                done => Some(done.map(drop)),
            },
            (None, None) => Some(event.wait()),
        };
        result.map_or(Poll::Pending, Poll::Ready)
    }
}

/// How work of the host's ended; while it hasn't, a task is to be woken when it does. The ticket is what a call before gave, and
/// is renewed.
fn poll_host(completion: &Completion, waker: &Waker, ticket: &mut Option<Ticket>) -> Option<Result<()>> {
    if completion.ended().is_some() {
        return Some(completion.tell());
    }
    if !ticket.as_ref().is_some_and(|ticket| ticket.renew(waker)) {
        match Ticket::of(None, waker) {
            Ok(new) => *ticket = Some(new),
            Err(error) => return Some(Err(error)),
        }
    }
    ticket.as_ref().and_then(|ticket| completion.poll(ticket.number()))
}

impl fmt::Debug for Pending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({:?})", self.is_done())
    }
}

/// A launch that is awaited: it begins when it is polled first, and on the CPU runs on a thread of its own. Nothing of an
/// executor is needed. Dropped, it goes on as a [`Pending`] does.
pub struct Launching<'a>(State<'a>);

enum State<'a> {
    Ready(Option<Box<Launch<'a>>>),
    Begun(Pending<'a>),
}

impl<'a> IntoFuture for Launch<'a> {
    type Output = Result<()>;
    type IntoFuture = Launching<'a>;

    fn into_future(self) -> Launching<'a> {
        Launching(State::Ready(Some(Box::new(self))))
    }
}

impl<'a> Launching<'a> {
    /// Enqueues the launch: on a GPU on the device's own stream.
    fn begin(launch: Box<Launch<'a>>) -> Result<Pending<'a>> {
        let device = launch.site().locate(launch.device())?.clone();
        match &device.0 {
            Kind::Gpu(_) => {
                launch.launch()?;
                Ok(Pending::until_idle(&device.stream()))
            }
            Kind::Cpu | Kind::Reference | Kind::Simulated(_) => launch.on(&Stream::new(&device)?),
        }
    }
}

impl Future for Launching<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let State::Ready(launch) = &mut self.0 {
            let launch = launch.take().expect("a future isn't polled after it is ready");
            match Launching::begin(launch) {
                Ok(pending) => self.0 = State::Begun(pending),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match &mut self.0 {
            State::Begun(pending) => Pin::new(pending).poll(context),
            State::Ready(_) => unreachable!("it was begun above"),
        }
    }
}

impl fmt::Debug for Launching<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::Ready(_) => f.write_str("Launching(not begun)"),
            State::Begun(pending) => write!(f, "Launching({:?})", pending.is_done()),
        }
    }
}
