use std::sync::Arc;

use rayon::prelude::*;

/// A fixed number of threads that share out fixed pieces of work.
///
/// The pieces do not depend on the number of threads, so neither does anything computed with them.
#[derive(Clone, Debug)]
pub struct Threads {
    pool: Option<Arc<rayon::ThreadPool>>,
}

impl Threads {
    /// A team of `n_threads`; 0 means one per core.
    pub fn new(n_threads: usize) -> std::io::Result<Self> {
        let n_threads = if n_threads == 0 { std::thread::available_parallelism()?.get() } else { n_threads };
        if n_threads == 1 {
            return Ok(Self { pool: None });
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().map_err(std::io::Error::other)?;
        Ok(Self { pool: Some(Arc::new(pool)) })
    }

    /// How many threads work at once.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    /// Does `work` on one of the threads, so that each [`Threads::for_each`] inside it need not wake the team anew.
    pub fn within<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            None => work(),
            Some(pool) => pool.install(work),
        }
    }

    /// Does both, side by side if there is a team. Allocates nothing.
    pub fn both(&self, one: impl FnOnce() + Send, other: impl FnOnce() + Send) {
        match &self.pool {
            None => {
                one();
                other();
            }
            Some(pool) => {
                pool.install(|| rayon::join(one, other));
            }
        }
    }

    /// Does `work` once for each piece, with the piece's number.
    pub fn for_each<T: Send>(&self, pieces: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        match &self.pool {
            None => pieces.iter_mut().enumerate().for_each(|(number, piece)| work(number, piece)),
            Some(pool) => {
                pool.install(|| pieces.par_iter_mut().enumerate().with_max_len(1).for_each(|(number, piece)| work(number, piece)))
            }
        }
    }

    /// Cuts slices of one length into chunks of `size`, the last one shorter, and does `work` once for all that stand in the same place,
    /// with the chunk's number. Allocates nothing.
    ///
    /// Panics if the slices differ in length or `size` is 0.
    pub fn for_each_chunk<T: Send, const N: usize>(&self, slices: [&mut [T]; N], size: usize, work: impl Fn(usize, [&mut [T]; N]) + Sync) {
        let n = slices.first().map_or(0, |slice| slice.len());
        assert!(slices.iter().all(|slice| slice.len() == n), "slices of one length");
        let n_chunks = n.div_ceil(size);
        self.within(|| halved(slices, Chunks { first: 0, n_chunks, size }, &work, self.pool.is_some()));
    }
}

/// Which chunks of slices: `n_chunks` of them from number `first` on.
#[derive(Clone, Copy)]
struct Chunks {
    first: usize,
    n_chunks: usize,
    size: usize,
}

/// Does `work` on the chunks of the first half and of the second, side by side if there is a team.
fn halved<T: Send, const N: usize>(
    mut slices: [&mut [T]; N],
    chunks: Chunks,
    work: &(impl Fn(usize, [&mut [T]; N]) + Sync),
    has_team: bool,
) {
    let Chunks { first, n_chunks, size } = chunks;
    if n_chunks <= 1 {
        return if n_chunks == 1 {
            work(first, slices)
        };
    }
    let half = n_chunks / 2;
    let front = slices.each_mut().map(|slice| slice.split_off_mut(..half * size).expect("all chunks but the last are whole"));
    let in_front = || halved(front, Chunks { first, n_chunks: half, size }, work, has_team);
    let behind = || halved(slices, Chunks { first: first + half, n_chunks: n_chunks - half, size }, work, has_team);
    if has_team {
        rayon::join(in_front, behind);
    } else {
        in_front();
        behind();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once_by_any_number_of_threads() {
        for n_threads in [1, 2, 3] {
            let threads = Threads::new(n_threads).expect("threads can be started");
            let mut pieces = [0; 7];
            threads.for_each(&mut pieces, |number, piece| *piece += number + 1);
            assert_eq!((threads.count(), pieces), (n_threads, [1, 2, 3, 4, 5, 6, 7]));
        }
    }

    #[test]
    fn both_are_done_by_any_number_of_threads_and_within_others() {
        for n_threads in [1, 2, 3] {
            let threads = Threads::new(n_threads).expect("threads can be started");
            let mut pieces = [(0, 0); 5];
            threads.for_each(&mut pieces, |number, (one, other)| threads.both(|| *one = number + 1, || *other = 10 * number));
            assert_eq!(pieces, [(1, 0), (2, 10), (3, 20), (4, 30), (5, 40)]);
        }
    }

    /// Chunks of 3 of 10: 0 1 2 | 3 4 5 | 6 7 8 | 9; each number becomes 10 times its chunk's, plus what stands beside it.
    #[test]
    fn chunks_of_several_slices_meet_in_the_same_place() {
        for n_threads in [1, 2, 3] {
            let threads = Threads::new(n_threads).expect("threads can be started");
            let (mut numbers, mut beside): (Vec<usize>, Vec<usize>) = ((0..10).collect(), (0..10).collect());
            threads.for_each_chunk([&mut numbers, &mut beside], 3, |number, [numbers, beside]| {
                for (x, y) in numbers.iter_mut().zip(beside) {
                    assert_eq!(x, y);
                    (*x, *y) = (10 * number + *y, number);
                }
            });
            assert_eq!(numbers, [0, 1, 2, 13, 14, 15, 26, 27, 28, 39]);
            assert_eq!(beside, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
            threads.for_each_chunk([&mut [] as &mut [u8]], 3, |_, _| panic!("there is no chunk"));
        }
    }
}
