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

    /// Does `work` once for each piece, with the piece's number.
    pub fn for_each<T: Send>(&self, pieces: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        match &self.pool {
            None => pieces.iter_mut().enumerate().for_each(|(number, piece)| work(number, piece)),
            Some(pool) => {
                pool.install(|| pieces.par_iter_mut().enumerate().with_max_len(1).for_each(|(number, piece)| work(number, piece)))
            }
        }
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
}
