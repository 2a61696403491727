#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| fairrate_fuzz_bodies::operations(text));
