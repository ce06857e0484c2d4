//! The bytes that a tensor lies in, wherever they are.

use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::host::HostBuffer;
use std::ops::Range;
use tile_ir::gpu::TENSOR_ALIGNMENT;

/// What frees memory when it is dropped.
pub(crate) type Keeper = Box<dyn Send + Sync>;

/// Memory, and what frees it; nothing does so for memory that another library frees on its own account.
pub(crate) type Memory = (Location, Option<Keeper>);

/// Where bytes are. Whoever holds one vouches that they are there and initialised, and for who else uses them.
#[derive(Clone)]
pub(crate) struct Location {
    device: Device,
    address: u64,
    bytes: usize,
}

/// Zeroed memory of a device.
pub(crate) fn zeroed(device: &Device, bytes: usize) -> Result<Memory> {
    let (address, keeper): (u64, Keeper) = match &device.0 {
        Kind::Reference | Kind::Cpu => {
            let mut buffer = HostBuffer::zeroed(bytes)?;
            (buffer.as_mut_ptr() as u64, Box::new(buffer))
        }
        Kind::Gpu(context) => {
            let buffer = context.zeroed(bytes)?;
            (buffer.address(), Box::new(buffer))
        }
    };
    Ok((Location { device: device.clone(), address, bytes }, Some(keeper)))
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
        Ok(Location { device: device.clone(), address, bytes })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The bytes where the host can read them; `None` where the device has its own memory.
    pub(crate) fn host_bytes(&self) -> Option<&[u8]> {
        // SAFETY: the bytes are there and initialised; who holds the location to read keeps others from writing.
        let bytes = || unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) };
        matches!(self.device.0, Kind::Cpu | Kind::Reference).then(bytes)
    }

    /// The bytes where the host can write them; `None` where the device has its own memory.
    pub(crate) fn host_bytes_mut(&mut self) -> Option<&mut [u8]> {
        // SAFETY: the bytes are there and initialised; who holds the location to write is the only one who uses them.
        let bytes = || unsafe { std::slice::from_raw_parts_mut(self.address as *mut u8, self.bytes) };
        matches!(self.device.0, Kind::Cpu | Kind::Reference).then(bytes)
    }

    /// Copies a range of the bytes to the host, after every launch that writes them.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub(crate) fn read(&self, range: Range<usize>, target: &mut [u8]) -> Result<()> {
        match &self.device.0 {
            Kind::Gpu(context) => context.download(self.address + range.start as u64, target),
            Kind::Cpu | Kind::Reference => {
                let bytes = self.host_bytes().unwrap_or_default();
                target.copy_from_slice(&bytes[range]);
                Ok(())
            }
        }
    }

    /// Copies bytes of the host here, from a place on, after every launch that uses them.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub(crate) fn write(&mut self, first: usize, source: &[u8]) -> Result<()> {
        match &self.device.0 {
            Kind::Gpu(context) => context.upload(source, self.address + first as u64),
            Kind::Cpu | Kind::Reference => {
                let bytes = self.host_bytes_mut().unwrap_or_default();
                bytes[first..first + source.len()].copy_from_slice(source);
                Ok(())
            }
        }
    }
}
