//! The bytes that a tensor lies in, wherever they are.

use super::descriptor::Descriptor;
use super::host_elements::{HostElements, HostElementsMut};
use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::gpu::{self, Context, GpuStream};
use crate::host::HostBuffer;
use crate::simulated::SPACE_BEHIND;
use crate::stream::graph::refuse_inside;
use crate::stream::{Access, Events, Kept, Owners, Uses, note_last};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tile_ir::gpu::TENSOR_ALIGNMENT;

/// Memory that is freed when nobody has it any more, and the launches and copies that still use it.
pub(crate) struct Allocation {
    uses: Uses,
    device: Device,
    keeper: ManuallyDrop<Keeper>,
}

/// What frees memory when it is dropped: what a driver gave, behind the work of its device's own stream.
enum Keeper {
    Host {
        _buffer: HostBuffer,
    },
    /// The host's, for copies of a GPU.
    Pinned {
        buffer: gpu::PinnedBuffer,
    },
    Gpu {
        _buffer: gpu::Buffer,
    },
    /// Another library's, which knows nothing of our launches.
    Foreign {
        /// Only dropped, so that nobody sees what a panic may have left of it.
        _owner: AssertUnwindSafe<Box<dyn Send + Sync>>,
    },
    /// Memory of a GPU that somebody keeps who isn't known here.
    Elsewhere,
}

impl Allocation {
    fn new(device: &Device, keeper: Keeper) -> Arc<Allocation> {
        let keeper = ManuallyDrop::new(keeper);
        Arc::new(Allocation { uses: Uses::default(), device: device.clone(), keeper })
    }

    /// Who uses the memory.
    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Whether nobody else knows the memory.
    fn is_ours(&self) -> bool {
        !matches!(&*self.keeper, Keeper::Foreign { .. } | Keeper::Elsewhere)
    }

    /// Whether a GPU copies from and to the memory while the host goes on.
    fn is_pinned_for(&self, context: &gpu::Context) -> bool {
        matches!(&*self.keeper, Keeper::Pinned { buffer } if buffer.context().family() == context.family())
    }

    /// Has the end of the memory come after the GPUs that use it. What streams of the host do has the memory, and is over.
    fn end(&self) -> Result<()> {
        match (&*self.keeper, &self.device.0) {
            (Keeper::Pinned { buffer }, _) => self.uses.end(Some(buffer.context())),
            (Keeper::Gpu { .. }, Kind::Gpu(context)) => self.uses.end(Some(context)),
            (Keeper::Foreign { .. }, Kind::Gpu(context)) => {
                self.uses.end(Some(context))?;
                context.synchronize()
            }
            (Keeper::Elsewhere, _) => Ok(()),
            _ => self.uses.end(None),
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // Memory that a device may still use stays, where nobody can say when that ends. The next call tells of the device.
        if self.end().is_ok() {
            // SAFETY: it is dropped here alone, once.
            unsafe { ManuallyDrop::drop(&mut self.keeper) }
        }
    }
}

impl Kept for Vec<Arc<Allocation>> {
    fn over(self) -> Option<Owners> {
        let owned = self.into_iter().filter(|allocation| !allocation.is_ours());
        let last: Vec<Allocation> = owned.filter_map(Arc::into_inner).collect();
        if last.is_empty() { None } else { Some(Box::new(last)) }
    }
}

impl Kept for [Location; 2] {
    fn over(self) -> Option<Owners> {
        self.into_iter().filter_map(|location| location.allocation).collect::<Vec<_>>().over()
    }
}

/// Where bytes are. Whoever holds one vouches that they are there and initialised, and for who else uses the elements that it
/// is held for. Others may use the rest of the bytes meanwhile.
#[derive(Clone)]
pub(crate) struct Location {
    device: Device,
    address: u64,
    bytes: usize,
    /// Whether elements of somebody else's, who may write them meanwhile, lie between those that it is held for.
    is_shared: bool,
    /// Nothing for the host's memory whose owner isn't ours to drop: what uses that is waited for.
    allocation: Option<Arc<Allocation>>,
}

/// Bytes of the host's memory.
#[derive(Clone, Copy)]
pub(super) struct HostMemory {
    pub(super) first: *mut u8,
    pub(super) bytes: usize,
}

/// Zeroed memory of the host that a device copies from and to while the host goes on; where the device is the host itself,
/// as any other.
pub(super) fn pinned(device: &Device, bytes: usize) -> Result<Location> {
    let Kind::Gpu(context) = &device.0 else { return zeroed(&Device::cpu(), bytes) };
    refuse_inside("a tensor that is made")?;
    let buffer = context.pinned(bytes)?;
    // SAFETY: the buffer has as many bytes at least, and nobody else has it.
    unsafe { buffer.first().write_bytes(0, bytes) };
    let (device, address) = (Device::cpu(), buffer.first() as u64);
    let allocation = Some(Allocation::new(&device, Keeper::Pinned { buffer }));
    Ok(Location { device, address, bytes, is_shared: false, allocation })
}

/// Memory of a GPU with anything in it, for what is written there before it is read.
pub(crate) fn scratch(device: &Device, context: &Arc<Context>, bytes: usize) -> Result<Location> {
    let buffer = context.allocated(bytes)?;
    let address = buffer.address();
    let allocation = Some(Allocation::new(device, Keeper::Gpu { _buffer: buffer }));
    Ok(Location { device: device.clone(), address, bytes, is_shared: false, allocation })
}

/// Zeroed memory of a device.
pub(crate) fn zeroed(device: &Device, bytes: usize) -> Result<Location> {
    refuse_inside("a tensor that is made")?;
    let (address, keeper) = match &device.0 {
        Kind::Reference | Kind::Cpu | Kind::Simulated(_) => {
            let behind = if matches!(device.0, Kind::Simulated(_)) { SPACE_BEHIND } else { 0 };
            let mut buffer = HostBuffer::zeroed(bytes.saturating_add(behind))?;
            (buffer.as_mut_ptr() as u64, Keeper::Host { _buffer: buffer })
        }
        Kind::Gpu(context) => {
            let buffer = context.zeroed(bytes)?;
            (buffer.address(), Keeper::Gpu { _buffer: buffer })
        }
    };
    let allocation = Some(Allocation::new(device, keeper));
    Ok(Location { device: device.clone(), address, bytes, is_shared: false, allocation })
}

/// Refuses what the host does with elements in the closure of a graph.
pub(super) fn refuse_use_inside(access: Access) -> Result<()> {
    refuse_inside(match access {
        Access::Read => "a read of a tensor's elements",
        Access::Write => "a write of a tensor's elements",
    })
}

impl Location {
    /// So many bytes from an address on, where elements of some size lie.
    ///
    /// # Safety
    /// The bytes are the device's, initialised, and stay there as long as this value and all copies of it.
    ///
    /// # Errors
    /// [`Error::Address`] where no such element can lie at the address.
    pub(crate) unsafe fn new(
        device: &Device,
        address: u64,
        bytes: usize,
        element: usize,
    ) -> Result<Location> {
        let refused = |problem: String| Error::Address { device: device.name(), address, problem };
        if !address.is_multiple_of(element as u64) {
            return Err(refused(format!("it isn't a multiple of {element} bytes")));
        }
        if address == 0 && bytes > 0 {
            return Err(refused(format!("it is null, and {bytes} bytes are needed")));
        }
        // Of no elements the address is never used, but references need one.
        let address = if bytes == 0 { TENSOR_ALIGNMENT } else { address };
        // On a GPU launches come back before they are done, whoever keeps the memory.
        let allocation = device.is_gpu().then(|| Allocation::new(device, Keeper::Elsewhere));
        Ok(Location { device: device.clone(), address, bytes, is_shared: false, allocation })
    }

    /// The same bytes, with what keeps them there.
    pub(super) fn kept_by(self, owner: impl Send + Sync + 'static) -> Location {
        let keeper = Keeper::Foreign { _owner: AssertUnwindSafe(Box::new(owner)) };
        let allocation = Some(Allocation::new(&self.device, keeper));
        Location { allocation, ..self }
    }

    /// The same bytes, held for elements between which those of somebody else lie.
    pub(super) fn shared(self) -> Location {
        Location { is_shared: true, ..self }
    }

    /// Whether elements of somebody else's lie between those that it is held for.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// What keeps the bytes there, and who uses them.
    pub(crate) fn allocation(&self) -> Option<&Arc<Allocation>> {
        self.allocation.as_ref()
    }

    /// Waits for everything that uses the bytes.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails; [`Error::Stream`] inside of a graph.
    #[cfg(feature = "dlpack")]
    pub(super) fn finish(&self) -> Result<()> {
        refuse_inside("memory that another library gets")?;
        self.settle(Access::Write)?;
        if let Kind::Gpu(context) = &self.device.0 { context.synchronize() } else { Ok(()) }
    }

    /// Waits for the launches on streams after which the bytes can be read, or written.
    fn settle(&self, access: Access) -> Result<()> {
        refuse_use_inside(access)?;
        self.allocation.as_ref().map_or(Ok(()), |allocation| allocation.uses.wait(access))
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The elements that the location is held for where the host can read them, after every launch that writes them; `None`
    /// where the device has its own memory.
    ///
    /// # Errors
    /// [`Error::Stream`] inside of a graph; [`Error::Driver`] if a device fails that copies from or to here.
    pub(super) fn host_elements<'a, T: Element>(
        &'a self,
        descriptor: &'a Descriptor,
    ) -> Result<Option<HostElements<'a, T>>> {
        self.settle(Access::Read)?;
        // SAFETY: who holds the location to read these elements keeps others from writing them.
        Ok(self.is_on_host().then(|| unsafe { HostElements::new(self.memory(), descriptor) }))
    }

    /// The elements that the location is held for where the host can write them, after every launch that uses them; `None`
    /// where the device has its own memory.
    ///
    /// # Errors
    /// As [`Location::host_elements`].
    pub(super) fn host_elements_mut<'a, T: Element>(
        &'a mut self,
        descriptor: &'a Descriptor,
    ) -> Result<Option<HostElementsMut<'a, T>>> {
        self.settle(Access::Write)?;
        // SAFETY: who holds the location to write these elements is the only one who uses them.
        Ok(self.is_on_host().then(|| unsafe { HostElementsMut::new(self.memory(), descriptor) }))
    }

    /// A range of the bytes where the host can read them, all of elements that the location is held for.
    ///
    /// # Errors
    /// As [`Location::host_elements`].
    fn host_bytes(&self, range: Range<usize>) -> Result<&[u8]> {
        self.settle(Access::Read)?;
        self.check_range(&range);
        // SAFETY: the bytes are there and initialised; who holds the location to read them keeps others from writing.
        Ok(unsafe { std::slice::from_raw_parts(self.memory().first.add(range.start), range.len()) })
    }

    /// A range of the bytes where the host can write them, all of elements that the location is held for.
    ///
    /// # Errors
    /// As [`Location::host_elements`].
    fn host_bytes_mut(&mut self, range: Range<usize>) -> Result<&mut [u8]> {
        self.settle(Access::Write)?;
        self.check_range(&range);
        // SAFETY: the bytes are there and initialised; who holds the location to write them is the only one who uses them.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.memory().first.add(range.start), range.len()) })
    }

    /// Whether a range lies inside of the host's memory: else the program is wrong.
    fn check_range(&self, range: &Range<usize>) {
        let (is_on_host, bytes) = (self.is_on_host(), self.bytes);
        assert!(is_on_host && range.start <= range.end && range.end <= bytes, "{range:?} of {bytes} bytes");
    }

    /// The bytes of the host, of which nothing is said of who uses them.
    pub(super) fn memory(&self) -> HostMemory {
        HostMemory { first: self.address as *mut u8, bytes: self.bytes }
    }

    /// Whether it is the host's memory.
    fn is_on_host(&self) -> bool {
        !matches!(self.device.0, Kind::Gpu(_))
    }

    /// Whether a GPU copies from and to these bytes of the host while the host goes on.
    fn is_pinned_for(&self, context: &gpu::Context) -> bool {
        self.allocation.as_ref().is_some_and(|allocation| allocation.is_pinned_for(context))
    }

    /// Has a GPU's own stream wait until it can read the bytes, or write them, and gives what it waits for.
    pub(super) fn order(&self, context: &gpu::Context, access: Access) -> Result<Events> {
        let uses = self.allocation.as_ref().map(|allocation| &allocation.uses);
        uses.map_or_else(|| Ok(Events::new()), |uses| uses.order(context, access))
    }

    /// Whoever owns memory that isn't ours takes what is done with it for done.
    pub(super) fn hand_back(&self, context: &gpu::Context) -> Result<()> {
        let is_ours = self.allocation.as_ref().is_some_and(|allocation| allocation.is_ours());
        if is_ours { Ok(()) } else { context.synchronize() }
    }

    /// Copies a range of the bytes to the host, after every launch that writes them.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails; [`Error::Stream`] inside of a graph.
    pub(crate) fn read(&self, range: Range<usize>, target: &mut [u8]) -> Result<()> {
        match &self.device.0 {
            Kind::Gpu(context) => {
                refuse_use_inside(Access::Read)?;
                self.order(context, Access::Read)?;
                context.download(self.address + range.start as u64, target)
            }
            Kind::Cpu | Kind::Reference | Kind::Simulated(_) => {
                target.copy_from_slice(self.host_bytes(range)?);
                Ok(())
            }
        }
    }

    /// Copies bytes of the host here, from a place on, after every launch that uses them. To a GPU's memory this returns
    /// before the device has them.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails; [`Error::Stream`] inside of a graph.
    pub(crate) fn write(&mut self, first: usize, source: &[u8]) -> Result<()> {
        match &self.device.0 {
            Kind::Gpu(context) => {
                refuse_use_inside(Access::Write)?;
                self.order(context, Access::Write)?;
                context.upload(source, self.address + first as u64)?;
                self.hand_back(context)
            }
            Kind::Cpu | Kind::Reference | Kind::Simulated(_) => {
                self.host_bytes_mut(first..first + source.len())?.copy_from_slice(source);
                Ok(())
            }
        }
    }

    /// Copies bytes of another place here, from a place on, after every launch that writes those or uses these. Between
    /// GPUs of one vendor, and between one and pinned memory, this returns before it is done.
    ///
    /// # Errors
    /// [`Error::Driver`] if a device fails; [`Error::Stream`] inside of a graph.
    pub(crate) fn copy(&mut self, first: usize, source: &Location, range: Range<usize>) -> Result<()> {
        let context = match (&self.device.0, &source.device.0) {
            (Kind::Gpu(to), Kind::Gpu(from)) if Arc::ptr_eq(to, from) => to,
            (Kind::Gpu(to), Kind::Gpu(from)) if to.family() == from.family() => {
                let (to, from) = (Arc::clone(to), Arc::clone(from));
                return match self.copy_from_peer(first, source, range.clone(), &to, &from) {
                    // What a driver refuses isn't begun.
                    Err(Error::Driver { .. }) => self.copy_by_host(first, source, range),
                    done => done,
                };
            }
            (Kind::Gpu(context), _) if source.is_pinned_for(context) => context,
            (_, Kind::Gpu(context)) if self.is_pinned_for(context) => context,
            _ => return self.copy_by_host(first, source, range),
        };
        refuse_inside("a copy")?;
        let context = Arc::clone(context);
        let mut before = self.order(&context, Access::Write)?;
        before.extend(source.order(&context, Access::Read)?);
        // SAFETY: both are noted below as in use.
        unsafe { self.enqueue(first, source, range, &context, None) }?;
        // The device's own memory is used by nobody who doesn't come after its own stream.
        let both = [(&*self, Access::Write), (source, Access::Read)].into_iter();
        let mut of_host = both
            .filter(|(location, _)| location.is_on_host())
            .filter_map(|(location, access)| Some((location.allocation.as_ref()?, access)))
            .peekable();
        if of_host.peek().is_some() {
            note_last(&GpuStream::own(&context), of_host, &before)?;
        }
        self.hand_back(&context)?;
        source.hand_back(&context)
    }

    fn copy_by_host(&mut self, first: usize, source: &Location, range: Range<usize>) -> Result<()> {
        if let (Kind::Gpu(_), Kind::Gpu(_)) = (&self.device.0, &source.device.0) {
            let mut between = vec![0; range.len()];
            source.read(range, &mut between)?;
            return self.write(first, &between);
        }
        if source.is_on_host() {
            return self.write(first, source.host_bytes(range)?);
        }
        source.read(range.clone(), self.host_bytes_mut(first..first + range.len())?)
    }

    /// Enqueues a copy of another place's bytes on a GPU's stream, or on its own. At least one of the two is the GPU's.
    ///
    /// # Safety
    /// The stream comes after all that writes the source or uses this, and who uses either later comes after the copy, as
    /// does the end of the memory.
    pub(super) unsafe fn enqueue(
        &mut self,
        first: usize,
        source: &Location,
        range: Range<usize>,
        context: &gpu::Context,
        stream: Option<&GpuStream>,
    ) -> Result<()> {
        let (target, from) = (self.address + first as u64, source.address + range.start as u64);
        match (self.is_on_host(), source.is_on_host()) {
            // SAFETY: ranges lie in the memory of their locations; the caller vouches for the rest.
            (false, true) => unsafe {
                context.enqueue_upload(target, from as *const u8, range.len(), stream)
            },
            // SAFETY: likewise.
            (true, false) => unsafe {
                context.enqueue_download(target as *mut u8, from, range.len(), stream)
            },
            _ => context.copy(target, from, range.len(), stream),
        }
    }
}
