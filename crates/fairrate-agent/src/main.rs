use fairrate_agent::flowlets;
use std::time::{Duration, Instant};
fn main() {
    let f = flowlets::Flowlets::watch(Duration::from_millis(5)).unwrap();
    let rate: f64 = std::env::args().nth(1).map_or(100e6, |a| a.parse().unwrap());
    let t0 = Instant::now();
    while t0.elapsed() < Duration::from_secs(8) {
        for e in f.events(Duration::from_millis(1)).unwrap() {
            println!("{:.4} {e:?}", t0.elapsed().as_secs_f64());
            f.pace(e.cookie, e.begins.then_some(rate)).unwrap();
        }
        f.walk().unwrap();
    }
}
