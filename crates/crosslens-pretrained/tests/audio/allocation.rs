//! An allocator that remembers the most memory each thread held at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

struct Watching;

fn watch(change: isize) {
    // A thread that ends has no such variables any more.
    HELD.try_with(|held| {
        held.set(held.get() + change);
        MOST.try_with(|most| most.set(most.get().max(held.get()))).ok();
    })
    .ok();
}

#[expect(unsafe_code, reason = "an allocator that watches what it hands on to the system's")]
// SAFETY: every call is handed on unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        watch(layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        watch(layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        watch(size as isize - layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        watch(-(layout.size() as isize));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// What `act` returns, and the most bytes this thread held meanwhile beyond what it held before.
pub(crate) fn most_held<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let result = act();
    (result, (MOST.get() - before) as usize)
}
