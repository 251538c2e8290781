//! Distances on the WGS-84 ellipsoid along great ellipses.
//!
//! The service measures along the cut of the ellipsoid with the plane through its centre and both positions,
//! which is also how it draws edges. The documented distances show it: over 1,907 km this arc is 8 cm longer
//! than the geodesic, the shortest line.
//!
//! On the sphere into which the ellipsoid is scaled, positions have their parametric latitude and the arc is
//! one of a great circle. The ellipse has the equatorial radius `a` where it crosses the equator, and a
//! smaller semi-axis `b` a quarter further. With `n = (a - b) / (a + b)`, the length of an arc around the
//! parametric angle `t` is a series in `n`, whose fifth power is below 1e-13.

use super::geojson::Position;
use super::surface::Vector;

/// The equatorial radius of WGS-84, in metres.
const EQUATORIAL_RADIUS: f64 = 6_378_137.0;
/// The flattening of WGS-84.
const FLATTENING: f64 = 1.0 / 298.257_223_563;

/// The distance between two positions in metres.
pub(super) fn distance(from: Position, to: Position) -> f64 {
    let (from, to) = (on_sphere(from), on_sphere(to));
    // With the difference, since the product of two close vectors has lost its digits.
    let normal = from.cross(to.minus(from));
    let sine = normal.length();
    let angle = sine.atan2(from.dot(to));
    if sine < 1e-15 {
        // The same position, or its antipode, up to rounding: every plane contains both, and a meridian is
        // the shortest arc.
        return arc(angle, from.0[2].asin(), 1.0);
    }
    let [x, y, z] = normal.scaled(1.0 / sine).0;
    let inclination = x.hypot(y);
    if inclination == 0.0 {
        return EQUATORIAL_RADIUS * angle;
    }
    // The node where the arc, prolonged, crosses the equator northwards, and the northernmost point.
    let node = Vector([-y / inclination, x / inclination, 0.0]);
    let north = Vector([x, y, z]).cross(node);
    arc(angle, from.dot(north).atan2(from.dot(node)), inclination)
}

/// The unit vector of a position on the scaled sphere.
fn on_sphere([longitude, latitude]: Position) -> Vector {
    let (sin_latitude, cos_latitude) = latitude.to_radians().sin_cos();
    let (sin_longitude, cos_longitude) = longitude.to_radians().sin_cos();
    let vector = Vector([
        cos_latitude * cos_longitude,
        cos_latitude * sin_longitude,
        (1.0 - FLATTENING) * sin_latitude,
    ]);
    vector.scaled(1.0 / vector.length())
}

/// The length of the arc from parametric angle `start` to `start + angle`, on the ellipse whose northernmost
/// point has the parametric latitude with sine `inclination`.
fn arc(angle: f64, start: f64, inclination: f64) -> f64 {
    const ECCENTRICITY_SQUARED: f64 = FLATTENING * (2.0 - FLATTENING);
    let semi_axis = EQUATORIAL_RADIUS * (1.0 - ECCENTRICITY_SQUARED * inclination * inclination).sqrt();
    let mean = (EQUATORIAL_RADIUS + semi_axis) / 2.0;
    let n = (EQUATORIAL_RADIUS - semi_axis) / (2.0 * mean);
    let n2 = n * n;
    // The Fourier coefficients of the speed √(1 + n² - 2n cos 2t) on the ellipse.
    let constant = 1.0 + n2 / 4.0 + n2 * n2 / 64.0;
    let harmonics = [-n + n2 * n / 8.0, -n2 / 4.0 + n2 * n2 / 16.0, -n2 * n / 8.0, -5.0 * n2 * n2 / 64.0];
    let middle = 2.0 * start + angle;
    let periodic: f64 = harmonics
        .into_iter()
        .zip([1.0, 2.0, 3.0, 4.0])
        .map(|(harmonic, j)| harmonic / j * (j * middle).cos() * (j * angle).sin())
        .sum();
    mean * (constant * angle + periodic)
}

#[cfg(test)]
mod tests {
    use geographiclib_rs::{Geodesic, InverseGeodesic};

    use super::*;

    const HERE: Position = [-122.11758113953535, 47.66901087006131];

    #[test]
    fn documented_distances() {
        let headquarters = distance([-122.12826822304672, 47.63980239335718], HERE);
        let research = distance([-96.84368664765994, 46.81297794314663], HERE);
        assert!((headquarters - 3_345.269_817_267_368).abs() < 1e-4, "{headquarters}");
        assert!((research - 1_907_438.421_299_902).abs() < 1e-4, "{research}");
        let geodesic: f64 =
            Geodesic::wgs84().inverse(46.81297794314663, -96.84368664765994, HERE[1], HERE[0]);
        assert!((research - geodesic - 0.0793).abs() < 1e-3);
    }

    #[test]
    fn meridians_and_the_equator_are_geodesics() {
        for (from, to) in [
            ([10.0, -20.0], [10.0, 70.0]),
            ([10.0, 80.0], [-170.0, 80.0]),
            ([0.0, 90.0], [0.0, -90.0]),
            ([5.0, 90.0], [77.0, 12.0]),
            ([-30.0, 0.0], [60.0, 0.0]),
            ([3.0, 4.0], [3.0, 4.0 + 1e-9]),
        ] {
            let geodesic: f64 = Geodesic::wgs84().inverse(from[1], from[0], to[1], to[0]);
            assert!((distance(from, to) - geodesic).abs() < 1e-8, "{from:?} {to:?}");
        }
        assert_eq!(distance(HERE, HERE), 0.0);
    }

    #[test]
    fn other_arcs_are_a_little_longer_than_geodesics() {
        for from in [[-120.0, 45.0], [0.0, 0.0], [33.0, -60.0]] {
            for to in [[20.0, 60.0], [-119.9, 45.1], [100.0, -30.0], [33.0, -59.0]] {
                let geodesic: f64 = Geodesic::wgs84().inverse(from[1], from[0], to[1], to[0]);
                let along = distance(from, to);
                assert!(along > geodesic - 1e-8 && along < geodesic * 1.00001, "{from:?} {to:?}");
                assert!((along - distance(to, from)).abs() < 1e-8);
            }
        }
        // Half of a meridian ellipse, between antipodes.
        let half = distance([0.0, 10.0], [180.0, -10.0]);
        assert!((half - 20_003_931.458_6).abs() < 1e-3, "{half}");
        assert!(half < EQUATORIAL_RADIUS * std::f64::consts::PI);
    }
}
