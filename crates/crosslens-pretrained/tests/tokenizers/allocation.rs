//! An allocator that remembers the largest piece of memory each thread asked for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Watching;

fn watch(size: usize) {
    // A thread that ends has no such variable any more.
    LARGEST.try_with(|largest| largest.set(largest.get().max(size))).ok();
}

#[expect(unsafe_code, reason = "an allocator that watches what it hands on to the system's")]
// SAFETY: every call is handed on unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        watch(layout.size());
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        watch(size);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// What `act` returns, and the largest piece of memory it asked for.
pub(crate) fn largest_of<T>(act: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let result = act();
    (result, LARGEST.get())
}
