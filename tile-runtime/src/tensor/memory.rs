//! The bytes that a tensor lies in, wherever they are.

use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::gpu;
use crate::host::HostBuffer;
use crate::stream::Uses;
use crate::stream::graph::refuse_inside;
use std::ops::Range;
use std::sync::Arc;
use tile_ir::gpu::TENSOR_ALIGNMENT;

/// Memory that is freed when nobody has it any more, and the launches that still use it.
pub(crate) struct Allocation {
    uses: Uses,
    device: Device,
    keeper: Keeper,
}

/// What frees memory when it is dropped: on a GPU behind the work of the device's own stream.
enum Keeper {
    Host {
        _buffer: HostBuffer,
    },
    Gpu {
        _buffer: gpu::Buffer,
    },
    /// Another library's, which knows nothing of our launches.
    Foreign {
        _owner: Box<dyn Send + Sync>,
    },
}

impl Allocation {
    fn new(device: &Device, keeper: Keeper) -> Arc<Allocation> {
        Arc::new(Allocation { uses: Uses::default(), device: device.clone(), keeper })
    }

    /// The launches on streams that use the memory.
    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }
}

impl Drop for Allocation {
    /// Launches of the host's streams have the memory while they go on; those of a GPU don't.
    fn drop(&mut self) {
        let Kind::Gpu(context) = &self.device.0 else { return };
        // Where the device fails, it uses nothing any more; the next call says so.
        let _ = self.uses.order(context, true);
        if let Keeper::Foreign { .. } = self.keeper {
            let _ = context.synchronize();
        }
    }
}

/// Where bytes are. Whoever holds one vouches that they are there and initialised, and for who else uses them.
#[derive(Clone)]
pub(crate) struct Location {
    device: Device,
    address: u64,
    bytes: usize,
    /// Nothing for memory whose owner isn't ours to drop.
    allocation: Option<Arc<Allocation>>,
}

/// Zeroed memory of a device.
pub(crate) fn zeroed(device: &Device, bytes: usize) -> Result<Location> {
    refuse_inside("a tensor that is made")?;
    let (address, keeper) = match &device.0 {
        Kind::Reference | Kind::Cpu => {
            let mut buffer = HostBuffer::zeroed(bytes)?;
            (buffer.as_mut_ptr() as u64, Keeper::Host { _buffer: buffer })
        }
        Kind::Gpu(context) => {
            let buffer = context.zeroed(bytes)?;
            (buffer.address(), Keeper::Gpu { _buffer: buffer })
        }
    };
    let allocation = Some(Allocation::new(device, keeper));
    Ok(Location { device: device.clone(), address, bytes, allocation })
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
        Ok(Location { device: device.clone(), address, bytes, allocation: None })
    }

    /// The same bytes, with what keeps them there.
    pub(super) fn kept_by(self, owner: impl Send + Sync + 'static) -> Location {
        let keeper = Keeper::Foreign { _owner: Box::new(owner) };
        let allocation = Some(Allocation::new(&self.device, keeper));
        Location { allocation, ..self }
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
        self.settle(true)?;
        if let Kind::Gpu(context) = &self.device.0 { context.synchronize() } else { Ok(()) }
    }

    /// Waits for the launches on streams after which the bytes can be read, or written.
    fn settle(&self, writes: bool) -> Result<()> {
        refuse_inside("a copy")?;
        if let Some(allocation) = &self.allocation {
            allocation.uses.wait(writes);
        }
        Ok(())
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The bytes where the host can read them, after every launch that writes them; `None` where the device has its own
    /// memory.
    ///
    /// # Errors
    /// [`Error::Stream`] inside of a graph.
    pub(crate) fn host_bytes(&self) -> Result<Option<&[u8]>> {
        self.settle(false)?;
        // SAFETY: the bytes are there and initialised; who holds the location to read keeps others from writing.
        let bytes = || unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) };
        Ok(matches!(self.device.0, Kind::Cpu | Kind::Reference).then(bytes))
    }

    /// The bytes where the host can write them, after every launch that uses them; `None` where the device has its own
    /// memory.
    ///
    /// # Errors
    /// [`Error::Stream`] inside of a graph.
    pub(crate) fn host_bytes_mut(&mut self) -> Result<Option<&mut [u8]>> {
        self.settle(true)?;
        // SAFETY: the bytes are there and initialised; who holds the location to write is the only one who uses them.
        let bytes = || unsafe { std::slice::from_raw_parts_mut(self.address as *mut u8, self.bytes) };
        Ok(matches!(self.device.0, Kind::Cpu | Kind::Reference).then(bytes))
    }

    /// Copies a range of the bytes to the host, after every launch that writes them.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails; [`Error::Stream`] inside of a graph.
    pub(crate) fn read(&self, range: Range<usize>, target: &mut [u8]) -> Result<()> {
        match &self.device.0 {
            Kind::Gpu(context) => {
                self.settle(false)?;
                context.download(self.address + range.start as u64, target)
            }
            Kind::Cpu | Kind::Reference => {
                let bytes = self.host_bytes()?.unwrap_or_default();
                target.copy_from_slice(&bytes[range]);
                Ok(())
            }
        }
    }

    /// Copies bytes of the host here, from a place on, after every launch that uses them.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails; [`Error::Stream`] inside of a graph.
    pub(crate) fn write(&mut self, first: usize, source: &[u8]) -> Result<()> {
        match &self.device.0 {
            Kind::Gpu(context) => {
                self.settle(true)?;
                context.upload(source, self.address + first as u64)
            }
            Kind::Cpu | Kind::Reference => {
                let bytes = self.host_bytes_mut()?.unwrap_or_default();
                bytes[first..first + source.len()].copy_from_slice(source);
                Ok(())
            }
        }
    }

    /// Copies bytes of another place here, from a place on, after every launch that writes those or uses these. On one
    /// GPU this returns before it is done.
    ///
    /// # Errors
    /// [`Error::Driver`] if a device fails; [`Error::Stream`] inside of a graph.
    pub(crate) fn copy(&mut self, first: usize, source: &Location, range: Range<usize>) -> Result<()> {
        if let (Kind::Gpu(to), Kind::Gpu(from)) = (&self.device.0, &source.device.0) {
            if !Arc::ptr_eq(to, from) {
                let mut between = vec![0; range.len()];
                source.read(range, &mut between)?;
                return self.write(first, &between);
            }
            refuse_inside("a copy")?;
            for (allocation, writes) in [(&self.allocation, true), (&source.allocation, false)] {
                if let Some(allocation) = allocation {
                    allocation.uses.order(to, writes)?;
                }
            }
            to.copy(self.address + first as u64, source.address + range.start as u64, range.len())?;
            // Whoever owns other memory takes the copy for done.
            let is_kept = self.allocation.is_some() && source.allocation.is_some();
            return if is_kept { Ok(()) } else { to.synchronize() };
        }
        if let Some(bytes) = source.host_bytes()? {
            return self.write(first, &bytes[range]);
        }
        let bytes = self.host_bytes_mut()?.unwrap_or_default();
        source.read(range.clone(), &mut bytes[first..first + range.len()])
    }
}
