//! Positions as vectors, with one set of operations for the plane and the globe.
//!
//! A position on the globe becomes the unit vector from the centre of the ellipsoid to it. The edge between
//! two positions, which the service draws as the cut of a plane through that centre, is then an arc of a
//! great circle. A position on a plane becomes `(x, y, 1)`. In both cases three vectors turn left if their
//! determinant is positive, so the tests below need not know which case it is.

use std::f64::consts::FRAC_PI_2;

use super::geojson::Position;

/// The surface on which shapes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surface {
    /// Edges are straight lines in x and y.
    Plane,
    /// Edges are arcs on the WGS-84 ellipsoid.
    Globe,
}

/// A position on a surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Vector(pub(super) [f64; 3]);

/// 1 - e² of WGS-84, the squared ratio of the ellipsoid's axes.
const AXIS_RATIO_SQUARED: f64 = {
    const FLATTENING: f64 = 1.0 / 298.257_223_563;
    (1.0 - FLATTENING) * (1.0 - FLATTENING)
};

impl Surface {
    /// The vector of a position.
    pub(super) fn vector(self, [x, y]: Position) -> Vector {
        match self {
            Surface::Plane => Vector([x, y, 1.0]),
            Surface::Globe => {
                let (longitude, latitude) = (x.to_radians(), y.to_radians());
                let (sin_latitude, cos_latitude) = latitude.sin_cos();
                let (sin_longitude, cos_longitude) = longitude.sin_cos();
                let vector = Vector([
                    cos_latitude * cos_longitude,
                    cos_latitude * sin_longitude,
                    AXIS_RATIO_SQUARED * sin_latitude,
                ]);
                vector.scaled(1.0 / vector.length())
            }
        }
    }

    /// The point at fraction `t` of the edge from `a` to `b`.
    pub(super) fn between(self, a: Vector, b: Vector, t: f64) -> Vector {
        let point = a.scaled(1.0 - t).plus(b.scaled(t));
        match self {
            Surface::Plane => point,
            Surface::Globe => point.scaled(1.0 / point.length()),
        }
    }
}

impl Vector {
    /// The position of a vector on the globe.
    pub(super) fn position(self) -> Position {
        let [x, y, z] = self.0;
        let equatorial = x.hypot(y);
        let latitude = if equatorial == 0.0 {
            FRAC_PI_2.copysign(z)
        } else {
            (z / AXIS_RATIO_SQUARED).atan2(equatorial)
        };
        [y.atan2(x).to_degrees(), latitude.to_degrees()]
    }

    pub(super) fn plus(self, other: Vector) -> Vector {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Vector([a + x, b + y, c + z])
    }

    pub(super) fn minus(self, other: Vector) -> Vector {
        self.plus(other.scaled(-1.0))
    }

    pub(super) fn scaled(self, by: f64) -> Vector {
        Vector(self.0.map(|component| component * by))
    }

    pub(super) fn dot(self, other: Vector) -> f64 {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        a * x + b * y + c * z
    }

    pub(super) fn cross(self, other: Vector) -> Vector {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Vector([b * z - c * y, c * x - a * z, a * y - b * x])
    }

    pub(super) fn length(self) -> f64 {
        self.dot(self).sqrt()
    }
}

/// Positive if `a`, `b`, `c` turn left, negative if they turn right, zero on one line. Computed with
/// differences, which is more exact for close positions.
pub(super) fn turn(a: Vector, b: Vector, c: Vector) -> f64 {
    a.dot(b.minus(a).cross(c.minus(a)))
}

/// Whether two edges cross in their interiors.
pub(super) fn cross(a: Vector, b: Vector, c: Vector, d: Vector) -> bool {
    let turns = [-turn(a, b, c), turn(a, b, d), -turn(c, d, b), turn(c, d, a)];
    // All have the same sign: on the globe this also excludes a crossing with the far side of an arc.
    turns.iter().all(|turn| *turn > 0.0) || turns.iter().all(|turn| *turn < 0.0)
}

/// Whether `point` lies on the edge from `a` to `b`, ends included, up to rounding.
pub(super) fn on_edge(point: Vector, a: Vector, b: Vector) -> bool {
    let tolerance = 1e-14 * a.length().max(b.length());
    let (along, ahead) = (b.minus(a), point.minus(a));
    let off = turn(a, b, point).abs();
    if off > tolerance * along.length().max(ahead.length()) {
        return false;
    }
    ahead.dot(point.minus(b)) <= tolerance * tolerance
}

/// Whether two edges share a point.
pub(super) fn touch(a: Vector, b: Vector, c: Vector, d: Vector) -> bool {
    cross(a, b, c, d) || on_edge(c, a, b) || on_edge(d, a, b) || on_edge(a, c, d) || on_edge(b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_vectors_convert_back_and_forth() {
        for position in [[0.0, 0.0], [-122.1, 47.6], [179.9, -89.0], [12.0, 90.0], [-45.0, -33.3]] {
            let back = Surface::Globe.vector(position).position();
            assert!((back[1] - position[1]).abs() < 1e-12, "{position:?} {back:?}");
            assert!(position[1] == 90.0 || (back[0] - position[0]).abs() < 1e-12, "{position:?} {back:?}");
        }
    }

    #[test]
    fn edges_cross_touch_or_miss_on_both_surfaces() {
        let cases = [
            ([[0.0, 0.0], [2.0, 0.0], [1.0, -1.0], [1.0, 1.0]], true, true),
            ([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0], [1.0, 1.0]], false, true),
            ([[0.0, 0.0], [2.0, 0.0], [3.0, -1.0], [3.0, 1.0]], false, false),
            ([[0.0, 0.0], [0.0, 2.0], [0.0, 2.0], [1.0, 5.0]], false, true),
            ([[0.0, 0.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]], false, false),
        ];
        for surface in [Surface::Plane, Surface::Globe] {
            for (positions, crosses, touches) in cases {
                let [a, b, c, d] = positions.map(|position| surface.vector(position));
                assert_eq!(cross(a, b, c, d), crosses, "{surface:?} {positions:?}");
                assert_eq!(touch(a, b, c, d), touches, "{surface:?} {positions:?}");
            }
        }
    }

    #[test]
    fn an_arc_does_not_cross_the_far_side_of_another() {
        let vector = |position| Surface::Globe.vector(position);
        let [a, b] = [vector([-10.0, 0.0]), vector([10.0, 0.0])];
        let [c, d] = [vector([180.0, -10.0]), vector([180.0, 10.0])];
        assert!(!cross(a, b, c, d));
    }
}
