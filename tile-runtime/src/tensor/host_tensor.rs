//! A tensor's elements on the host.

/// A tensor's elements on the host, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor<T> {
    pub(super) elements: Vec<T>,
    pub(super) shape: Vec<usize>,
}

impl<T> HostTensor<T> {
    pub(super) fn new(elements: Vec<T>, shape: &[usize]) -> HostTensor<T> {
        HostTensor { elements, shape: shape.to_vec() }
    }
}

impl<T: Copy> HostTensor<T> {
    /// Extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements in row-major order.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// The element at a multi-index; `None` outside.
    pub fn get(&self, index: impl AsRef<[usize]>) -> Option<T> {
        let index = index.as_ref();
        let inside =
            index.len() == self.shape.len() && index.iter().zip(&self.shape).all(|(i, extent)| i < extent);
        inside.then(|| self.elements[tile_layout::linear_index(index, &self.shape)])
    }
}
