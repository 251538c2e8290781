//! Parsing and validation of GeoJSON objects.

use std::borrow::Cow;

use crate::context::GeometryKind;
use crate::value::{Object, Value};

/// Longitude and latitude in degrees, or x and y.
pub(super) type Position = [f64; 2];

/// The geometry of a GeoJSON object; collections are flattened.
#[derive(Debug, Default)]
pub(super) struct Geometry {
    pub(super) points: Vec<Position>,
    /// The lines, of at least two positions each.
    pub(super) lines: Vec<Vec<Position>>,
    /// The polygons, each a list of rings, the outer one first. Rings are closed and have at least four
    /// positions.
    pub(super) polygons: Vec<Vec<Vec<Position>>>,
}

/// Why an object is not valid GeoJSON, as a message for users.
type Reason = Cow<'static, str>;

/// How deep geometry collections may nest.
const COLLECTIONS_MAX: usize = 16;

/// Parses a GeoJSON object.
pub(super) fn read(object: &Object, kind: GeometryKind) -> Result<Geometry, Reason> {
    let mut geometry = Geometry::default();
    Reader { kind, geometry: &mut geometry }.object(object, 0)?;
    Ok(geometry)
}

/// Parses a GeoJSON Point directly, without a [`Geometry`].
pub(super) fn read_point(object: &Object, kind: GeometryKind) -> Option<Position> {
    let is_point = object.get("type").and_then(Value::as_str) == Some("Point");
    position(object.get("coordinates").filter(|_| is_point)?, kind).ok()
}

struct Reader<'g> {
    kind: GeometryKind,
    geometry: &'g mut Geometry,
}

impl Reader<'_> {
    fn object(&mut self, object: &Object, depth: usize) -> Result<(), Reason> {
        let kind = object.get("type").and_then(Value::as_str).ok_or("The object has no 'type'.")?;
        if kind == "GeometryCollection" {
            let parts = object.get("geometries").and_then(Value::as_array);
            let parts = parts.ok_or("A GeometryCollection needs an array of 'geometries'.")?;
            if depth == COLLECTIONS_MAX {
                return Err("Collections are nested too deep.".into());
            }
            return parts.iter().try_for_each(|part| {
                let part = part.as_object().ok_or("A GeometryCollection holds objects.")?;
                self.object(part, depth + 1)
            });
        }
        let coordinates = object.get("coordinates").ok_or("The object has no 'coordinates'.")?;
        match kind {
            "Point" => self.point(coordinates),
            "MultiPoint" => each(coordinates, |part| self.point(part)),
            "LineString" => self.line(coordinates),
            "MultiLineString" => each(coordinates, |part| self.line(part)),
            "Polygon" => self.polygon(coordinates),
            "MultiPolygon" => each(coordinates, |part| self.polygon(part)),
            _ => Err("The 'type' is not one of GeoJSON's geometries.".into()),
        }
    }

    fn point(&mut self, coordinates: &Value) -> Result<(), Reason> {
        self.geometry.points.push(position(coordinates, self.kind)?);
        Ok(())
    }

    fn line(&mut self, coordinates: &Value) -> Result<(), Reason> {
        let line = self.positions(coordinates)?;
        if line.len() < 2 {
            return Err("A LineString needs at least two positions.".into());
        }
        self.geometry.lines.push(line);
        Ok(())
    }

    fn polygon(&mut self, coordinates: &Value) -> Result<(), Reason> {
        let mut rings = Vec::new();
        each(coordinates, |ring| {
            let ring = self.positions(ring)?;
            if ring.len() < 4 {
                return Err("A ring of a Polygon needs at least four positions.".into());
            }
            if ring.first() != ring.last() {
                let number = rings.len() + 1;
                return Err(Cow::Owned(format!(
                    "The Polygon input is not valid because the start and end points of the ring number \
                     {number} are not the same. Each ring of a polygon must have the same start and end points."
                )));
            }
            rings.push(ring);
            Ok(())
        })?;
        if rings.is_empty() {
            return Err("A Polygon needs at least one ring.".into());
        }
        self.geometry.polygons.push(rings);
        Ok(())
    }

    fn positions(&self, coordinates: &Value) -> Result<Vec<Position>, Reason> {
        let elements = coordinates.as_array().ok_or(NOT_AN_ARRAY)?;
        elements.iter().map(|element| position(element, self.kind)).collect()
    }
}

const NOT_AN_ARRAY: &str = "The coordinates are not nested as the type asks for.";

fn each(coordinates: &Value, read: impl FnMut(&Value) -> Result<(), Reason>) -> Result<(), Reason> {
    coordinates.as_array().ok_or(NOT_AN_ARRAY)?.iter().try_for_each(read)
}

/// Parses two numbers; an altitude may follow and is ignored.
fn position(coordinates: &Value, kind: GeometryKind) -> Result<Position, Reason> {
    let Some([x, y, ..]) = coordinates.as_array() else { return Err("A position has two numbers.".into()) };
    let (Some(x), Some(y)) = (x.as_f64(), y.as_f64()) else {
        return Err("A position has two numbers.".into());
    };
    if !x.is_finite() || !y.is_finite() {
        return Err("A position has two numbers.".into());
    }
    match kind {
        GeometryKind::Geometry => {}
        GeometryKind::Geography => {
            if !(-90.0..=90.0).contains(&y) {
                return Err("Latitude values must be between -90 and 90 degrees.".into());
            }
            if !(-180.0..=180.0).contains(&x) {
                return Err("Longitude values must be between -180 and 180 degrees.".into());
            }
        }
    }
    Ok([x, y])
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::value;
    use super::*;

    #[test]
    fn geometries_parse_and_invalid_ones_have_a_message() {
        for (json, fault) in [
            (r#"{"type":"Point","coordinates":[1,2]}"#, ""),
            (r#"{"type":"Point","coordinates":[1,2,3]}"#, ""),
            (r#"{"type":"MultiPoint","coordinates":[[1,2],[3,4]]}"#, ""),
            (r#"{"type":"LineString","coordinates":[[1,2],[3,4]]}"#, ""),
            (r#"{"type":"MultiLineString","coordinates":[[[1,2],[3,4]]]}"#, ""),
            (r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}"#, ""),
            (r#"{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,0]]]]}"#, ""),
            (r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]}]}"#, ""),
            (r#"{"coordinates":[1,2]}"#, "no 'type'"),
            (r#"{"type":"Circle","coordinates":[1,2]}"#, "not one of"),
            (r#"{"type":"Point"}"#, "no 'coordinates'"),
            (r#"{"type":"Point","coordinates":[1]}"#, "two numbers"),
            (r#"{"type":"Point","coordinates":["1",2]}"#, "two numbers"),
            (r#"{"type":"Point","coordinates":[0,91]}"#, "Latitude"),
            (r#"{"type":"Point","coordinates":[181,0]}"#, "Longitude"),
            (r#"{"type":"LineString","coordinates":[[1,2]]}"#, "two positions"),
            (r#"{"type":"LineString","coordinates":7}"#, "not nested"),
            (r#"{"type":"Polygon","coordinates":[]}"#, "one ring"),
            (r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[0,0]]]}"#, "four positions"),
            (r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]}"#, "ring number 1"),
            (r#"{"type":"GeometryCollection"}"#, "geometries"),
        ] {
            let object = value(json);
            let result = read(object.as_object().unwrap(), GeometryKind::Geography);
            match result {
                Ok(_) => assert_eq!(fault, "", "{json}"),
                Err(reason) => {
                    assert!(!fault.is_empty() && reason.contains(fault), "{json}: {reason}");
                }
            }
        }
        let far = value(r#"{"type":"Point","coordinates":[500,500]}"#);
        assert!(read(far.as_object().unwrap(), GeometryKind::Geometry).is_ok());
    }
}
