//! Spatial functions of GeoJSON objects.
//!
//! `geojson` parses an object, `surface` and `shape` project it, `relate` and `measure` compute with it.
//! With geography, edges are arcs on the WGS-84 ellipsoid; a polygon larger than half the globe is treated
//! by longitude and latitude as on a flat map. The result for an invalid object is undefined.

mod geojson;
mod great_ellipse;
mod measure;
mod relate;
mod shape;
mod surface;

use std::sync::{Arc, OnceLock};

use geojson::{Geometry, Position};
use shape::Shape;
use surface::Surface;

use super::argument::or_undefined;
use super::{Call, Family, Function, FunctionContext, exactly};
use crate::context::GeometryKind;
use crate::value::{Object, SmolStr, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    of("ST_AREA", 1, area),
    of("ST_DISTANCE", 2, distance),
    of("ST_INTERSECTS", 2, |args, context| {
        relation(args, context, |shape, point| shape.covers(point), relate::intersects)
    }),
    of("ST_ISVALID", 1, is_valid),
    of("ST_ISVALIDDETAILED", 1, is_valid_detailed),
    of("ST_WITHIN", 2, |args, context| relation(args, context, relate::holds_point, relate::is_within)),
];

const fn of(name: &'static str, args: usize, call: Call) -> Function {
    exactly(name, args, Family::Spatial, call)
}

/// The largest number of position pairs that a function compares: a fraction of a second.
const PAIRS_MAX: usize = 50_000_000;

/// A valid GeoJSON argument.
enum Operand {
    /// A point, by far the most frequent geometry, which needs no preparation.
    Point(Position),
    Other(Arc<PreparedGeometry>),
}

/// A geometry and its projections, cached from row to row.
#[derive(Debug)]
pub(super) struct PreparedGeometry {
    geometry: Geometry,
    /// The projection on its own surface; on the globe, `None` if it is too large.
    natural: Option<Shape>,
    flat: OnceLock<Shape>,
}

impl PreparedGeometry {
    /// Parses and projects `object`, if it is valid.
    pub(super) fn new(object: &Object, kind: GeometryKind) -> Option<PreparedGeometry> {
        let geometry = geojson::read(object, kind).ok()?;
        let natural = Shape::new(&geometry, surface_of(kind));
        Some(PreparedGeometry { geometry, natural, flat: OnceLock::new() })
    }

    fn flat(&self) -> &Shape {
        self.flat.get_or_init(|| {
            Shape::new(&self.geometry, Surface::Plane).expect("a plane has room for every ring")
        })
    }
}

fn surface_of(kind: GeometryKind) -> Surface {
    match kind {
        GeometryKind::Geography => Surface::Globe,
        GeometryKind::Geometry => Surface::Plane,
    }
}

fn operand(value: &Value, context: &FunctionContext<'_>) -> Option<Operand> {
    let Value::Object(object) = value else { return None };
    match geojson::read_point(object, context.schema.geometry) {
        Some(position) => Some(Operand::Point(position)),
        None => context.prepared_geometry(object).map(Operand::Other),
    }
}

fn two_operands(args: &[Value], context: &FunctionContext<'_>) -> Option<(Operand, Operand)> {
    let [first, second] = args else { return None };
    Some((operand(first, context)?, operand(second, context)?))
}

/// Calls `ask` with both operands projected on one surface.
fn on_one_surface<T>(
    a: &Operand,
    b: &Operand,
    context: &FunctionContext<'_>,
    ask: impl FnOnce(&Shape, &Shape) -> T,
) -> Option<T> {
    fn natural(operand: &Operand) -> Option<Option<&Shape>> {
        match operand {
            Operand::Point(_) => Some(None),
            Operand::Other(prepared) => prepared.natural.as_ref().map(Some),
        }
    }
    let (surface, a_shape, b_shape) = match (natural(a), natural(b)) {
        (Some(a_shape), Some(b_shape)) => (surface_of(context.schema.geometry), a_shape, b_shape),
        _ => (Surface::Plane, flat(a), flat(b)),
    };
    let (a_point, b_point);
    let a_shape = match a_shape {
        Some(shape) => shape,
        None => {
            a_point = point_shape(a, surface)?;
            &a_point
        }
    };
    let b_shape = match b_shape {
        Some(shape) => shape,
        None => {
            b_point = point_shape(b, surface)?;
            &b_point
        }
    };
    let pairs = a_shape.size.saturating_mul(b_shape.size);
    context.budget.spend(pairs as u64 / 8);
    (pairs <= PAIRS_MAX).then(|| ask(a_shape, b_shape))
}

fn flat(operand: &Operand) -> Option<&Shape> {
    match operand {
        Operand::Point(_) => None,
        Operand::Other(prepared) => Some(prepared.flat()),
    }
}

fn point_shape(operand: &Operand, surface: Surface) -> Option<Shape> {
    match operand {
        Operand::Point(position) => Some(Shape::of_point(*position, surface)),
        Operand::Other(_) => None,
    }
}

/// Computes a relation of two operands, with a faster way for a point and a shape.
fn relation(
    args: &[Value],
    context: &FunctionContext<'_>,
    of_point: fn(&Shape, surface::Vector) -> bool,
    of_shapes: fn(&Shape, &Shape) -> bool,
) -> Value {
    let Some((a, b)) = two_operands(args, context) else { return Value::Undefined };
    if let (Operand::Point(position), Operand::Other(prepared)) = (&a, &b) {
        let shape = prepared.natural.as_ref().unwrap_or_else(|| prepared.flat());
        return Value::Bool(of_point(shape, shape.surface.vector(*position)));
    }
    or_undefined(on_one_surface(&a, &b, context, of_shapes))
}

/// `ST_DISTANCE(a, b)`: the distance between two geometries.
fn distance(args: &[Value], context: &FunctionContext<'_>) -> Value {
    let kind = context.schema.geometry;
    match two_operands(args, context) {
        Some((Operand::Point(a), Operand::Point(b))) => {
            Value::from(measure::between_points(a, b, surface_of(kind)))
        }
        Some((a, b)) => or_undefined(on_one_surface(&a, &b, context, measure::between_shapes).flatten()),
        None => Value::Undefined,
    }
}

/// `ST_AREA(g)`: the area of a geometry; 0 for points and lines.
fn area(args: &[Value], context: &FunctionContext<'_>) -> Value {
    let [argument] = args else { return Value::Undefined };
    match operand(argument, context) {
        Some(Operand::Point(_)) => Value::from(0),
        Some(Operand::Other(prepared)) => {
            Value::from(measure::area(&prepared.geometry, surface_of(context.schema.geometry)))
        }
        None => Value::Undefined,
    }
}

/// `ST_ISVALID(g)`: whether the object is valid GeoJSON.
fn is_valid(args: &[Value], context: &FunctionContext<'_>) -> Value {
    match args {
        [Value::Object(object)] => Value::Bool(geojson::read(object, context.schema.geometry).is_ok()),
        _ => Value::Undefined,
    }
}

/// `ST_ISVALIDDETAILED(g)`: whether the object is valid, and why not.
fn is_valid_detailed(args: &[Value], context: &FunctionContext<'_>) -> Value {
    let [Value::Object(object)] = args else { return Value::Undefined };
    let geometry = geojson::read(object, context.schema.geometry);
    let valid = (SmolStr::new_static("valid"), Value::Bool(geometry.is_ok()));
    match geometry {
        Ok(_) => Value::object([valid]),
        Err(reason) => Value::object([valid, (SmolStr::new_static("reason"), Value::from(reason.as_ref()))]),
    }
}

#[cfg(test)]
mod tests;
