//! Relations of shapes: intersection and containment.
//!
//! Both compare all pairs of edges. A clockwise polygon is everything outside its ring; the rules below
//! only ask on which side of a region points are, so they hold for those polygons as well.

use super::shape::{Region, Shape, Side};
use super::surface::{Surface, Vector, cross, on_edge, touch};

/// Whether the shapes have a point in common; both lie on the same surface.
pub(super) fn intersects(a: &Shape, b: &Shape) -> bool {
    a.vertices().any(|vertex| b.covers(vertex))
        || b.vertices().any(|vertex| a.covers(vertex))
        || a.edges().any(|(p, q)| b.edges().any(|(r, s)| touch(p, q, r, s)))
}

/// Whether every part of `a` lies in one part of `b`; both lie on the same surface. A point on the edge of
/// a region is not in it; lines and regions may run along its edge.
pub(super) fn is_within(a: &Shape, b: &Shape) -> bool {
    let has_parts = a.size > 0;
    has_parts
        && a.points.iter().all(|point| holds_point(b, *point))
        && a.lines.iter().all(|line| holds_line(b, line))
        && a.regions.iter().all(|region| b.regions.iter().any(|outer| holds_region(outer, region, b.surface)))
}

/// Whether a point lies in one part of `b`.
pub(super) fn holds_point(b: &Shape, point: Vector) -> bool {
    b.regions.iter().any(|region| region.side(point) == Side::Inside)
        || b.points.iter().any(|own| on_edge(point, *own, *own))
        || b.lines.iter().any(|line| lies_along(line, point))
}

fn lies_along(line: &[Vector], point: Vector) -> bool {
    line.windows(2).any(|pair| on_edge(point, pair[0], pair[1]))
}

fn holds_line(b: &Shape, line: &[Vector]) -> bool {
    let samples =
        || line.iter().copied().chain(line.windows(2).map(|pair| b.surface.between(pair[0], pair[1], 0.5)));
    let in_region = |region: &Region| {
        samples().all(|point| region.side(point) != Side::Outside)
            && samples().any(|point| region.side(point) == Side::Inside)
            && !line.windows(2).any(|pair| region.edges().any(|(r, s)| cross(pair[0], pair[1], r, s)))
    };
    b.regions.iter().any(in_region)
        || b.lines.iter().any(|outer| samples().all(|point| lies_along(outer, point)))
}

/// Whether a region lies in another: its edge lies in it, and no edge of the other lies inside. Where the
/// edges are equal, their sides must be equal too.
fn holds_region(outer: &Region, inner: &Region, surface: Surface) -> bool {
    let edge_is_shared = inner.rings().flatten().all(|vertex| outer.side(*vertex) == Side::On);
    (!edge_is_shared || inner.is_complement() == outer.is_complement())
        && inner.rings().flatten().all(|vertex| outer.side(*vertex) != Side::Outside)
        && outer.rings().flatten().all(|vertex| inner.side(*vertex) != Side::Inside)
        && !inner.edges().any(|(p, q)| outer.edges().any(|(r, s)| cross(p, q, r, s)))
        && inner.edges().all(|(p, q)| outer.side(surface.between(p, q, 0.5)) != Side::Outside)
        && outer.edges().all(|(p, q)| inner.side(surface.between(p, q, 0.5)) != Side::Inside)
}
