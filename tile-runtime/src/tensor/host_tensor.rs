//! A tensor's elements on the host.

/// A tensor's elements on the host, in row-major order.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Device, Tensor};
/// let x = Tensor::from_vec(&Device::cpu(), vec![3, 1, 2, 0], [2, 2])?.to_host()?;
/// assert_eq!((x.get([1, 0]), x.get([2, 0])), (Some(2), None));
/// assert_eq!((&x).into_iter().max(), Some(&3));
/// let mut elements = x.into_vec();
/// elements.sort();
/// assert_eq!(elements, [0, 1, 2, 3]);
/// # Ok::<(), tile::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor<T> {
    pub(super) elements: Vec<T>,
    pub(super) shape: Vec<usize>,
}

impl<T> HostTensor<T> {
    pub(super) fn new(elements: Vec<T>, shape: &[usize]) -> HostTensor<T> {
        HostTensor { elements, shape: shape.to_vec() }
    }

    /// The elements in row-major order, without copying them.
    pub fn into_vec(self) -> Vec<T> {
        self.elements
    }
}

/// The elements in row-major order.
impl<T> IntoIterator for HostTensor<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.into_iter()
    }
}

/// The elements in row-major order.
impl<'a, T> IntoIterator for &'a HostTensor<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.iter()
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
