//! Pause and resume frames as lengths of time.

use crate::model::Pause;

/// Every pause as (port, from, to); one that is never lifted lasts until `end_ns`.
pub fn intervals(pauses: &[Pause], end_ns: f64) -> Vec<(String, f64, f64)> {
    let mut open: Vec<(&str, f64, u32)> = Vec::new();
    let mut done = Vec::new();
    for event in pauses {
        let at = open.iter().position(|(port, ..)| *port == event.port);
        match (at, event.pause) {
            (None, true) => open.push((&event.port, event.t_ns, 1)),
            (Some(i), true) => open[i].2 += 1,
            (Some(i), false) if 1 < open[i].2 => open[i].2 -= 1,
            (Some(i), false) => {
                let (port, from, _) = open.remove(i);
                done.push((port.to_owned(), from, event.t_ns));
            }
            (None, false) => {}
        }
    }
    done.extend(open.into_iter().map(|(port, from, _)| (port.to_owned(), from, end_ns)));
    done
}

/// The number of paused ports over time.
pub fn paused_ports(pauses: &[Pause], end_ns: f64) -> (Vec<f64>, Vec<f64>) {
    let mut steps: Vec<(f64, f64)> =
        intervals(pauses, end_ns).iter().flat_map(|(_, a, b)| [(*a, 1.0), (*b, -1.0)]).collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (mut t, mut n, mut now) = (vec![0.0], vec![0.0], 0.0);
    for (at, change) in steps {
        now += change;
        if t.last() == Some(&at) {
            n.pop();
        } else {
            t.push(at);
        }
        n.push(now);
    }
    if t.last().is_some_and(|last| *last < end_ns) {
        t.push(end_ns);
        n.push(now);
    }
    (t, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(t_ns: f64, port: &str, pause: bool) -> Pause {
        Pause { t_ns, port: port.into(), pause }
    }

    #[test]
    fn pauses_become_intervals_and_counts() {
        let events = [
            pause(1.0, "a", true),
            pause(2.0, "b", true),
            pause(3.0, "a", true), // another class of the same port
            pause(4.0, "a", false),
            pause(5.0, "a", false),
            pause(6.0, "c", false),
        ];
        let got = intervals(&events, 10.0);
        assert_eq!(got, [("a".to_owned(), 1.0, 5.0), ("b".to_owned(), 2.0, 10.0)]);
        let (t, n) = paused_ports(&events, 10.0);
        assert_eq!((t, n), (vec![0.0, 1.0, 2.0, 5.0, 10.0], vec![0.0, 1.0, 2.0, 1.0, 0.0]));
    }
}
