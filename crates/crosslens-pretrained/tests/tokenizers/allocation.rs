//! An allocator that remembers the largest piece of memory each thread asked for, and the most it held at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

struct Watching;

/// A piece of memory that is asked for, and by how much what is held changes.
fn watch(size: usize, change: isize) {
    // A thread that ends has no such variables any more.
    LARGEST.try_with(|largest| largest.set(largest.get().max(size))).ok();
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
        watch(layout.size(), layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        watch(size, size as isize - layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        watch(0, -(layout.size() as isize));
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

/// What `act` returns, and the most bytes this thread held meanwhile beyond what it held before.
pub(crate) fn most_held<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let result = act();
    (result, (MOST.get() - before) as usize)
}
