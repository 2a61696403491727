#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: (u8, &[u8])| fairrate_fuzz_bodies::results(file.0, file.1));
