//! What the account has been asked, and what it has charged.

use driver_bench::peri::Peri;

/// Totals since the account was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) requests: f64,
    pub(crate) charge: f64,
}

/// Reads the totals from the control port.
pub(crate) fn read(peri: &Peri) -> Result<Cost, String> {
    let text = peri.metrics()?;
    let sum = |name: &str| {
        let of_name = |line: &&str| line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} "));
        let values = text.lines().filter(of_name).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum::<f64>()
    };
    Ok(Cost { requests: sum("perihelion_requests_total"), charge: sum("perihelion_request_units_total") })
}
