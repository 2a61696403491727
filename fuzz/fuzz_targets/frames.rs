#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fairrate_fuzz_bodies::frames(bytes));
