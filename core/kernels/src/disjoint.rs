//! Several threads write one buffer, each its own part.

/// A raw pointer that may cross threads.
///
/// Whoever dereferences it must show that no other work item touches the same elements.
#[derive(Clone, Copy)]
pub(crate) struct Disjoint(*mut f32);

impl Disjoint {
    pub(crate) fn new(buffer: &mut [f32]) -> Self {
        Self(buffer.as_mut_ptr())
    }

    /// The pointer to element `index`.
    ///
    /// # Safety
    /// `index` must be inside the buffer given to [`Disjoint::new`], and that buffer still borrowed.
    #[expect(unsafe_code, reason = "pointer arithmetic inside a buffer")]
    pub(crate) unsafe fn at(self, index: usize) -> *mut f32 {
        // SAFETY: the caller keeps the index in range.
        unsafe { self.0.add(index) }
    }
}

// SAFETY: the pointer is only dereferenced for the part of one work item, and parts do not overlap.
#[expect(unsafe_code, reason = "disjoint writes of several threads into one buffer")]
unsafe impl Send for Disjoint {}
// SAFETY: as for Send.
#[expect(unsafe_code, reason = "as for Send")]
unsafe impl Sync for Disjoint {}
