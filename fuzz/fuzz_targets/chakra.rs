#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fairrate_fuzz_bodies::chakra(data));
