#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, &str)| fairrate_fuzz_bodies::allocate_files(texts.0, texts.1));
