#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    crosslens_fuzz::corpus_po(input);
});
