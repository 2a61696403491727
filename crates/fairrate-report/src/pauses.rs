//! Pause and resume frames as intervals of time.

use crate::model::Pause;

/// Returns every interval in which some class of a port is paused, as (port, from, to); a pause without an end lasts
/// until `end_ns`.
pub fn intervals(pauses: &[Pause], end_ns: f64) -> Vec<(String, f64, f64)> {
    // The paused ports, each with the pause's start and the paused classes.
    let mut open: Vec<(&str, f64, Vec<u8>)> = Vec::new();
    let mut done = Vec::new();
    for event in pauses {
        let Some(i) = open.iter().position(|(port, ..)| *port == event.port) else {
            if event.pause {
                open.push((&event.port, event.t_ns, vec![event.class]));
            }
            continue;
        };
        let classes = &mut open[i].2;
        classes.retain(|class| *class != event.class);
        if event.pause {
            classes.push(event.class);
        } else if classes.is_empty() {
            let (port, from, _) = open.remove(i);
            done.push((port.to_owned(), from, event.t_ns));
        }
    }
    done.extend(open.into_iter().map(|(port, from, _)| (port.to_owned(), from, end_ns)));
    done
}

/// Returns the number of paused ports over time, as times and numbers.
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

    fn frame(t_ns: f64, port: &str, class: u8, pause: bool) -> Pause {
        Pause { t_ns, port: port.into(), class, pause }
    }

    #[test]
    fn pauses_become_intervals_and_counts() {
        let events = [
            frame(1.0, "a", 3, true),
            frame(2.0, "b", 3, true),
            frame(3.0, "a", 4, true),
            frame(3.5, "a", 4, true), // repeated
            frame(4.0, "a", 3, false),
            frame(5.0, "a", 4, false),
            frame(6.0, "c", 3, false), // a resume without a pause
        ];
        let got = intervals(&events, 10.0);
        assert_eq!(got, [("a".to_owned(), 1.0, 5.0), ("b".to_owned(), 2.0, 10.0)]);
        let (t, n) = paused_ports(&events, 10.0);
        assert_eq!((t, n), (vec![0.0, 1.0, 2.0, 5.0, 10.0], vec![0.0, 1.0, 2.0, 1.0, 0.0]));
    }
}
