//! Parsing and validation of GeoJSON objects.

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

/// How deep geometry collections may nest.
const COLLECTIONS_MAX: usize = 16;

/// Parses a GeoJSON object; the error is a message for users.
pub(super) fn read(object: &Object, kind: GeometryKind) -> Result<Geometry, &'static str> {
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
    fn object(&mut self, object: &Object, depth: usize) -> Result<(), &'static str> {
        let kind = object.get("type").and_then(Value::as_str).ok_or("The object has no 'type'.")?;
        if kind == "GeometryCollection" {
            let parts = object.get("geometries").and_then(Value::as_array);
            let parts = parts.ok_or("A GeometryCollection needs an array of 'geometries'.")?;
            if depth == COLLECTIONS_MAX {
                return Err("Collections are nested too deep.");
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
            _ => Err("The 'type' is not one of GeoJSON's geometries."),
        }
    }

    fn point(&mut self, coordinates: &Value) -> Result<(), &'static str> {
        self.geometry.points.push(position(coordinates, self.kind)?);
        Ok(())
    }

    fn line(&mut self, coordinates: &Value) -> Result<(), &'static str> {
        let line = self.positions(coordinates)?;
        if line.len() < 2 {
            return Err("A LineString needs at least two positions.");
        }
        self.geometry.lines.push(line);
        Ok(())
    }

    fn polygon(&mut self, coordinates: &Value) -> Result<(), &'static str> {
        let mut rings = Vec::new();
        each(coordinates, |ring| {
            let ring = self.positions(ring)?;
            if ring.len() < 4 {
                return Err("A ring of a Polygon needs at least four positions.");
            }
            if ring.first() != ring.last() {
                return Err("A ring of a Polygon ends where it starts.");
            }
            rings.push(ring);
            Ok(())
        })?;
        if rings.is_empty() {
            return Err("A Polygon needs at least one ring.");
        }
        self.geometry.polygons.push(rings);
        Ok(())
    }

    fn positions(&self, coordinates: &Value) -> Result<Vec<Position>, &'static str> {
        let elements = coordinates.as_array().ok_or(NOT_AN_ARRAY)?;
        elements.iter().map(|element| position(element, self.kind)).collect()
    }
}

const NOT_AN_ARRAY: &str = "The coordinates are not nested as the type asks for.";

fn each(
    coordinates: &Value,
    read: impl FnMut(&Value) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    coordinates.as_array().ok_or(NOT_AN_ARRAY)?.iter().try_for_each(read)
}

/// Parses two numbers; an altitude may follow and is ignored.
fn position(coordinates: &Value, kind: GeometryKind) -> Result<Position, &'static str> {
    let Some([x, y, ..]) = coordinates.as_array() else { return Err("A position has two numbers.") };
    let (Some(x), Some(y)) = (x.as_f64(), y.as_f64()) else { return Err("A position has two numbers.") };
    if !x.is_finite() || !y.is_finite() {
        return Err("A position has two numbers.");
    }
    match kind {
        GeometryKind::Geometry => {}
        GeometryKind::Geography => {
            if !(-90.0..=90.0).contains(&y) {
                return Err("Latitude values must be between -90 and 90 degrees.");
            }
            if !(-180.0..=180.0).contains(&x) {
                return Err("Longitude values must be between -180 and 180 degrees.");
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
            (r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]}"#, "ends where it starts"),
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
