//! Distances and areas: metres on the globe, units of the coordinates on a plane.

use geographiclib_rs::{Geodesic, PolygonArea, Winding};

use super::geojson::{Geometry, Position};
use super::great_ellipse;
use super::relate::intersects;
use super::shape::Shape;
use super::surface::{Surface, Vector};

/// The distance between two positions.
pub(super) fn between_points(a: Position, b: Position, surface: Surface) -> f64 {
    match surface {
        Surface::Plane => (a[0] - b[0]).hypot(a[1] - b[1]),
        Surface::Globe => great_ellipse::distance(a, b),
    }
}

/// The distance between two shapes on one surface: 0 if they intersect; `None` if one is empty.
///
/// Two edges that do not intersect are closest at an end of one of them, so every position of one shape is
/// compared with every edge of the other.
pub(super) fn between_shapes(a: &Shape, b: &Shape) -> Option<f64> {
    if a.size == 0 || b.size == 0 {
        return None;
    }
    if intersects(a, b) {
        return Some(0.0);
    }
    let mut nearest = Nearest::default();
    for (vertices, edges) in [(a, b), (b, a)] {
        for vertex in vertices.vertices() {
            for point in &edges.points {
                nearest.offer(Candidate { point: vertex, from: *point, to: *point, at: 0.0 }, a.surface);
            }
            for (from, to) in edges.edges() {
                let at = foot(vertex, from, to);
                nearest.offer(Candidate { point: vertex, from, to, at }, a.surface);
            }
        }
    }
    nearest.candidates.iter().map(|(candidate, _)| candidate.distance(a.surface)).min_by(f64::total_cmp)
}

/// The fraction of the edge from `from` to `to` at which it is closest to `point`, along straight lines
/// through space.
fn foot(point: Vector, from: Vector, to: Vector) -> f64 {
    let edge = to.minus(from);
    let squared = edge.dot(edge);
    if squared == 0.0 { 0.0 } else { (point.minus(from).dot(edge) / squared).clamp(0.0, 1.0) }
}

/// A position, and the point of an edge that may be closest to it.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    point: Vector,
    from: Vector,
    to: Vector,
    at: f64,
}

impl Candidate {
    /// The distance along a straight line.
    fn estimate(&self, surface: Surface) -> f64 {
        self.point.minus(surface.between(self.from, self.to, self.at)).length()
    }

    /// The distance on the surface. On the globe, the closest point is searched along the edge.
    fn distance(&self, surface: Surface) -> f64 {
        if surface == Surface::Plane {
            return self.estimate(surface);
        }
        let here = self.point.position();
        let distance =
            |at: f64| between_points(here, surface.between(self.from, self.to, at).position(), surface);
        if self.from == self.to {
            return distance(0.0);
        }
        // The straight estimate is off by less than this: the flattening is a third of a percent, and the
        // chord of an edge differs from its arc by as much again.
        const REACH: f64 = 0.05;
        // Golden section search: the distance falls towards the closest point and rises after it.
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        const STEPS: usize = 40;
        let (mut low, mut high) = ((self.at - REACH).max(0.0), (self.at + REACH).min(1.0));
        let mut left = high - GOLDEN * (high - low);
        let mut right = low + GOLDEN * (high - low);
        let (mut at_left, mut at_right) = (distance(left), distance(right));
        for _ in 0..STEPS {
            if at_left <= at_right {
                (high, right, at_right) = (right, left, at_left);
                left = high - GOLDEN * (high - low);
                at_left = distance(left);
            } else {
                (low, left, at_left) = (left, right, at_right);
                right = low + GOLDEN * (high - low);
                at_right = distance(right);
            }
        }
        distance(low).min(distance(high)).min(at_left).min(at_right)
    }
}

/// The best candidates by their estimates.
#[derive(Default)]
struct Nearest {
    candidates: Vec<(Candidate, f64)>,
}

impl Nearest {
    /// Candidates within this factor of the best estimate are measured exactly.
    const CLOSE: f64 = 1.01;
    /// The largest number of candidates; more of them are corners of the same area.
    const CANDIDATES_MAX: usize = 8;

    fn offer(&mut self, candidate: Candidate, surface: Surface) {
        let estimate = candidate.estimate(surface);
        let best = self.candidates.iter().map(|(_, best)| *best).fold(f64::INFINITY, f64::min);
        if estimate > best * Self::CLOSE {
            return;
        }
        if estimate < best {
            self.candidates.retain(|(_, other)| *other <= estimate * Self::CLOSE);
        }
        self.candidates.push((candidate, estimate));
        if self.candidates.len() > Self::CANDIDATES_MAX {
            self.candidates.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
            self.candidates.truncate(Self::CANDIDATES_MAX);
        }
    }
}

/// The area of all polygons. A clockwise polygon covers what is outside its ring; on a plane, where that is
/// infinite, it covers what is inside.
pub(super) fn area(geometry: &Geometry, surface: Surface) -> f64 {
    let ring_area = match surface {
        Surface::Plane => plane_ring_area,
        Surface::Globe => globe_ring_area,
    };
    geometry
        .polygons
        .iter()
        .map(|rings| {
            let mut areas = rings.iter().map(|ring| ring_area(ring));
            let outer = areas.next().unwrap_or(0.0);
            let outer = match surface {
                Surface::Globe if outer < 0.0 => Geodesic::wgs84().area() + outer,
                _ => outer.abs(),
            };
            outer - areas.map(f64::abs).sum::<f64>()
        })
        // Not `sum`, which gives minus zero for no polygons.
        .fold(0.0, |total, area| total + area)
}

/// The signed area on a plane; positive if the ring is counter-clockwise.
fn plane_ring_area(ring: &[Position]) -> f64 {
    let Some([x, y]) = ring.first().copied() else { return 0.0 };
    let doubled: f64 = ring
        .windows(2)
        .map(|pair| (pair[0][0] - x) * (pair[1][1] - y) - (pair[1][0] - x) * (pair[0][1] - y))
        .sum();
    doubled / 2.0
}

/// The signed area on the globe; positive if the ring is counter-clockwise.
fn globe_ring_area(ring: &[Position]) -> f64 {
    let globe = Geodesic::wgs84();
    let mut polygon = PolygonArea::new(&globe, Winding::CounterClockwise);
    // The last position repeats the first, which the sum closes by itself.
    for [longitude, latitude] in ring.split_last().map_or(ring, |(_, rest)| rest) {
        polygon.add_point(*latitude, *longitude);
    }
    let (_, area, _) = polygon.compute(true);
    area
}
