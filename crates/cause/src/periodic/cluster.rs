//! Ends of stalls that lie at nearly one phase of a period, as a first guess of a comb.

/// A source needs at least so many ends.
pub(super) const FEWEST: usize = 5;

/// Ends that lie in one window of phases.
pub(super) struct Cluster {
    pub(super) ends: Vec<f64>,
    pub(super) period_ns: f64,
    /// Middle of the window.
    pub(super) at_ns: f64,
}

/// The window of phases that holds most ends.
pub(super) fn densest(ends: &[f64], period_ns: f64, width_ns: f64) -> Option<Cluster> {
    let mut phases: Vec<f64> =
        ends.iter().map(|end| end - libm::floor(end / period_ns) * period_ns).collect();
    phases.sort_unstable_by(f64::total_cmp);
    let count = phases.len();
    phases.extend_from_within(..);
    phases[count..].iter_mut().for_each(|phase| *phase += period_ns);
    let (from, _) = window(&phases, count, width_ns)?;
    let at_ns = phases[from] + width_ns / 2.0;
    let within = |end: &&f64| {
        let off_ns = **end - at_ns;
        (off_ns - libm::round(off_ns / period_ns) * period_ns).abs() <= width_ns / 2.0
    };
    Some(Cluster { ends: ends.iter().filter(within).copied().collect(), period_ns, at_ns })
}

/// Beginning and size of the fullest window of sorted values, among the first so many.
pub(super) fn window(sorted: &[f64], starts: usize, width_ns: f64) -> Option<(usize, usize)> {
    let mut end = 0;
    let mut best = None;
    for start in 0..starts {
        while end < sorted.len() && sorted[end] - sorted[start] <= width_ns {
            end += 1;
        }
        if best.is_none_or(|(_, size)| end - start > size) {
            best = Some((start, end - start));
        }
    }
    best
}

/// The fullest third of a cluster's window, with the period at which it is fullest.
pub(super) fn narrowed(cluster: &Cluster, width_ns: f64, run_ns: f64) -> Option<Cluster> {
    let third_ns = width_ns / 3.0;
    let numbered: Vec<(f64, f64)> = cluster
        .ends
        .iter()
        .map(|end| {
            let number = libm::round((end - cluster.at_ns) / cluster.period_ns);
            (number, end - cluster.at_ns - number * cluster.period_ns)
        })
        .collect();
    let periods = (run_ns / cluster.period_ns).max(1.0);
    let mut best: Option<(usize, f64, f64)> = None;
    let mut offs = vec![0.0; numbered.len()];
    for step in -9..=9 {
        let slope = f64::from(step) * third_ns / 3.0 / periods;
        for (off, (number, ns)) in offs.iter_mut().zip(&numbered) {
            *off = ns - slope * number;
        }
        offs.sort_unstable_by(f64::total_cmp);
        let (from, size) = window(&offs, offs.len(), third_ns)?;
        if best.is_none_or(|(most, _, _)| size > most) {
            best = Some((size, slope, offs[from] + third_ns / 2.0));
        }
    }
    let (_, slope, middle_ns) = best?;
    let ends = cluster
        .ends
        .iter()
        .zip(&numbered)
        .filter(|(_, (number, ns))| (ns - slope * number - middle_ns).abs() <= third_ns / 2.0)
        .map(|(end, _)| *end)
        .collect();
    Some(Cluster { ends, period_ns: cluster.period_ns + slope, at_ns: cluster.at_ns + middle_ns })
}
