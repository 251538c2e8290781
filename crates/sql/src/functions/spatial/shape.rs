//! A geometry projected on a surface, for point location and edge tests.

use super::geojson::{Geometry, Position};
use super::surface::{Surface, Vector, on_edge};

/// Points, lines and regions on one surface.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) surface: Surface,
    pub(super) points: Vec<Vector>,
    pub(super) lines: Vec<Vec<Vector>>,
    pub(super) regions: Vec<Region>,
    /// The number of positions, which determines the cost of relations.
    pub(super) size: usize,
}

/// A polygon: the inside (or outside) of its outer ring, without its holes.
#[derive(Debug)]
pub(super) struct Region {
    outer: Ring,
    holes: Vec<Ring>,
}

/// The location of a point relative to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    On,
    Outside,
}

impl Shape {
    /// Projects a geometry; `None` if one of its rings does not fit on half a globe.
    pub(super) fn new(geometry: &Geometry, surface: Surface) -> Option<Shape> {
        let vectors = |positions: &Vec<Position>| -> Vec<Vector> {
            positions.iter().map(|position| surface.vector(*position)).collect()
        };
        let regions = geometry
            .polygons
            .iter()
            .map(|rings| {
                let mut rings = rings.iter().map(|ring| Ring::new(vectors(ring), surface));
                let outer = rings.next()??;
                Some(Region { outer, holes: rings.collect::<Option<_>>()? })
            })
            .collect::<Option<Vec<Region>>>()?;
        let mut shape = Shape {
            surface,
            points: vectors(&geometry.points),
            lines: geometry.lines.iter().map(vectors).collect(),
            regions,
            size: 0,
        };
        shape.size = shape.points.len()
            + shape.lines.iter().map(Vec::len).sum::<usize>()
            + shape.regions.iter().flat_map(Region::rings).map(<[Vector]>::len).sum::<usize>();
        Some(shape)
    }

    /// The shape of a single point.
    pub(super) fn of_point(position: Position, surface: Surface) -> Shape {
        Shape {
            surface,
            points: vec![surface.vector(position)],
            lines: Vec::new(),
            regions: Vec::new(),
            size: 1,
        }
    }

    /// The edges of lines and rings.
    pub(super) fn edges(&self) -> impl Iterator<Item = (Vector, Vector)> {
        edges_of(self.lines.iter().map(Vec::as_slice).chain(self.regions.iter().flat_map(Region::rings)))
    }

    /// All positions of the shape.
    pub(super) fn vertices(&self) -> impl Iterator<Item = Vector> {
        let lines = self.lines.iter().map(Vec::as_slice);
        let paths = lines.chain(self.regions.iter().flat_map(Region::rings));
        self.points.iter().copied().chain(paths.flatten().copied())
    }

    /// Whether `point` is a point of this shape, on one of its lines, or in or on the edge of one of its
    /// regions.
    pub(super) fn covers(&self, point: Vector) -> bool {
        self.points.iter().any(|own| on_edge(point, *own, *own))
            || edges_of(self.lines.iter().map(Vec::as_slice)).any(|(a, b)| on_edge(point, a, b))
            || self.regions.iter().any(|region| region.side(point) != Side::Outside)
    }
}

impl Region {
    /// Whether the region is the outside of its outer ring.
    pub(super) fn is_complement(&self) -> bool {
        self.outer.is_clockwise()
    }

    /// The outer ring, then the holes; each ends where it starts.
    pub(super) fn rings(&self) -> impl Iterator<Item = &[Vector]> {
        std::iter::once(&self.outer).chain(&self.holes).map(|ring| ring.vertices.as_slice())
    }

    /// The edges of all rings.
    pub(super) fn edges(&self) -> impl Iterator<Item = (Vector, Vector)> {
        edges_of(self.rings())
    }

    /// The location of `point`. Cost: linear in the length of the rings.
    pub(super) fn side(&self, point: Vector) -> Side {
        match self.outer.side(point) {
            Side::On => return Side::On,
            Side::Inside if self.is_complement() => return Side::Outside,
            Side::Outside if !self.is_complement() => return Side::Outside,
            Side::Inside | Side::Outside => {}
        }
        for hole in &self.holes {
            match hole.side(point) {
                Side::On => return Side::On,
                Side::Inside => return Side::Outside,
                Side::Outside => {}
            }
        }
        Side::Inside
    }
}

fn edges_of<'s>(paths: impl Iterator<Item = &'s [Vector]>) -> impl Iterator<Item = (Vector, Vector)> {
    paths.flat_map(|path| path.windows(2).map(|pair| (pair[0], pair[1])))
}

/// A closed path that fits on a map on which its edges are straight.
#[derive(Debug)]
struct Ring {
    vertices: Vec<Vector>,
    map: Map,
    /// The vertices on the map.
    drawn: Vec<[f64; 2]>,
    /// Twice the signed area on the map; negative if the ring is clockwise.
    doubled_area: f64,
}

impl Ring {
    fn new(vertices: Vec<Vector>, surface: Surface) -> Option<Ring> {
        let map = Map::around(&vertices, surface)?;
        let drawn = vertices.iter().map(|vertex| map.draw(*vertex)).collect::<Option<Vec<_>>>()?;
        // Relative to one vertex, so that a small ring far from the origin keeps its precision.
        let [x, y] = *drawn.first()?;
        let doubled_area = drawn
            .windows(2)
            .map(|pair| (pair[0][0] - x) * (pair[1][1] - y) - (pair[1][0] - x) * (pair[0][1] - y))
            .sum();
        Some(Ring { vertices, map, drawn, doubled_area })
    }

    fn is_clockwise(&self) -> bool {
        self.doubled_area < 0.0
    }

    fn side(&self, point: Vector) -> Side {
        let Some([x, y]) = self.map.draw(point) else { return Side::Outside };
        if self.vertices.windows(2).any(|pair| on_edge(point, pair[0], pair[1])) {
            return Side::On;
        }
        // An odd number of edges to the right of a point encloses it.
        let mut inside = false;
        for pair in self.drawn.windows(2) {
            let ([ax, ay], [bx, by]) = (pair[0], pair[1]);
            if (ay > y) != (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax {
                inside = !inside;
            }
        }
        if inside { Side::Inside } else { Side::Outside }
    }
}

/// The gnomonic map of half the globe, on which arcs are straight lines; for a plane, the plane itself.
#[derive(Debug)]
struct Map {
    /// The directions up, east and north of the map.
    axes: [Vector; 3],
}

impl Map {
    /// The smallest distance of positions from the rim of the half globe, as a sine.
    const RIM: f64 = 1e-3;

    fn around(vertices: &[Vector], surface: Surface) -> Option<Map> {
        let unit = |at: usize| {
            let mut components = [0.0; 3];
            components[at] = 1.0;
            Vector(components)
        };
        if surface == Surface::Plane {
            return Some(Map { axes: [unit(2), unit(0), unit(1)] });
        }
        let sum = vertices.iter().fold(Vector([0.0; 3]), |sum, vertex| sum.plus(*vertex));
        if sum.length() < Self::RIM {
            return None;
        }
        let up = sum.scaled(1.0 / sum.length());
        // Any perpendicular direction will do; the smallest component is farthest from up.
        let smallest = (0..3).min_by(|a, b| up.0[*a].abs().total_cmp(&up.0[*b].abs()))?;
        let east = up.cross(unit(smallest));
        let east = east.scaled(1.0 / east.length());
        Some(Map { axes: [up, east, up.cross(east)] })
    }

    /// The position on the map; `None` on the other half of the globe.
    fn draw(&self, point: Vector) -> Option<[f64; 2]> {
        let [height, x, y] = self.axes.map(|axis| point.dot(axis));
        (height >= Self::RIM).then(|| [x / height, y / height])
    }
}
