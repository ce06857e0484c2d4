//! The bytes that a tensor lies in, wherever they are.

use crate::cuda;
use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::host::HostBuffer;
use std::ops::Range;
use tile_ir::gpu::TENSOR_ALIGNMENT;

/// Memory of a device.
pub(crate) struct Memory {
    device: Device,
    bytes: usize,
    place: Place,
}

enum Place {
    Host(HostBuffer),
    Cuda(cuda::Buffer),
    /// Memory that another library has allocated on the device, and frees, after the owner is dropped where there is one.
    Foreign {
        address: u64,
        owner: Option<Box<dyn Send + Sync>>,
    },
}

impl Memory {
    /// Zeroed memory.
    pub(crate) fn zeroed(device: &Device, bytes: usize) -> Result<Memory> {
        let place = match &device.0 {
            Kind::Reference | Kind::Cpu => Place::Host(HostBuffer::zeroed(bytes)?),
            Kind::Cuda(context) => Place::Cuda(context.zeroed(bytes)?),
        };
        Ok(Memory { device: device.clone(), bytes, place })
    }

    /// Memory of another library, of elements of so many bytes.
    ///
    /// # Safety
    /// The bytes from `address` on are the device's, initialised, and stay there as long as this value.
    ///
    /// # Errors
    /// [`Error::Address`] where no such element can lie at the address.
    pub(crate) unsafe fn foreign(
        device: &Device,
        address: u64,
        bytes: usize,
        element: usize,
    ) -> Result<Memory> {
        let refused = |problem: String| Error::Address { device: device.name(), address, problem };
        if !address.is_multiple_of(element as u64) {
            return Err(refused(format!("it isn't a multiple of {element} bytes")));
        }
        if address == 0 && bytes > 0 {
            return Err(refused(format!("it is null, and {bytes} bytes are needed")));
        }
        // Of no elements the address is never used, but references need one.
        let address = if bytes == 0 { TENSOR_ALIGNMENT } else { address };
        Ok(Memory { device: device.clone(), bytes, place: Place::Foreign { address, owner: None } })
    }

    /// Keeps the owner of foreign memory for as long as this.
    #[cfg(feature = "dlpack")]
    pub(crate) fn keep(&mut self, kept: Box<dyn Send + Sync>) {
        if let Place::Foreign { owner, .. } = &mut self.place {
            *owner = Some(kept);
        }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The address of the first byte, for reading.
    pub(crate) fn address(&self) -> u64 {
        match (&self.place, &self.device.0) {
            (Place::Cuda(buffer), Kind::Cuda(context)) => context.address(buffer),
            (Place::Host(buffer), _) => buffer.as_ptr() as u64,
            (Place::Foreign { address, .. }, _) => *address,
            (Place::Cuda(_), _) => unreachable!("memory of a GPU is made by its context"),
        }
    }

    /// The address of the first byte, for writing.
    pub(crate) fn address_mut(&mut self) -> u64 {
        match (&mut self.place, &self.device.0) {
            (Place::Cuda(buffer), Kind::Cuda(context)) => context.address_mut(buffer),
            (Place::Host(buffer), _) => buffer.as_mut_ptr() as u64,
            (Place::Foreign { address, .. }, _) => *address,
            (Place::Cuda(_), _) => unreachable!("memory of a GPU is made by its context"),
        }
    }

    /// The bytes where the host can read them; `None` where the device has its own memory.
    pub(crate) fn host_bytes(&self) -> Option<&[u8]> {
        match (&self.place, &self.device.0) {
            (_, Kind::Cuda(_)) => None,
            (Place::Host(buffer), _) => Some(buffer.as_bytes()),
            // SAFETY: who made the memory vouches for that many initialised bytes there.
            (Place::Foreign { address, .. }, _) => {
                Some(unsafe { std::slice::from_raw_parts(*address as *const u8, self.bytes) })
            }
            (Place::Cuda(_), _) => unreachable!("memory of a GPU is made by its context"),
        }
    }

    /// The bytes where the host can write them; `None` where the device has its own memory.
    pub(crate) fn host_bytes_mut(&mut self) -> Option<&mut [u8]> {
        match (&mut self.place, &self.device.0) {
            (_, Kind::Cuda(_)) => None,
            (Place::Host(buffer), _) => Some(buffer.as_bytes_mut()),
            // SAFETY: who made the memory vouches for that many initialised bytes there, and that nobody else uses them
            // while this value is borrowed exclusively.
            (Place::Foreign { address, .. }, _) => {
                Some(unsafe { std::slice::from_raw_parts_mut(*address as *mut u8, self.bytes) })
            }
            (Place::Cuda(_), _) => unreachable!("memory of a GPU is made by its context"),
        }
    }

    /// Copies a range of the memory to the host, after every launch that writes it.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub(crate) fn read(&self, range: Range<usize>, target: &mut [u8]) -> Result<()> {
        match &self.device.0 {
            Kind::Cuda(context) => context.download(self.address() + range.start as u64, target),
            Kind::Cpu | Kind::Reference => {
                let bytes = self.host_bytes().unwrap_or_default();
                target.copy_from_slice(&bytes[range]);
                Ok(())
            }
        }
    }

    /// Copies bytes of the host into the memory, from a place on, after every launch that uses it.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub(crate) fn write(&mut self, first: usize, source: &[u8]) -> Result<()> {
        let address = self.address_mut() + first as u64;
        match &self.device.0 {
            Kind::Cuda(context) => context.upload(source, address),
            Kind::Cpu | Kind::Reference => {
                let bytes = self.host_bytes_mut().unwrap_or_default();
                bytes[first..first + source.len()].copy_from_slice(source);
                Ok(())
            }
        }
    }
}
