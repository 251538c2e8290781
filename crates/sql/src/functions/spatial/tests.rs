use super::super::tests::{check, show, value};
use super::super::{FunctionContext, find};
use crate::context::{GeometryKind, QueryContext, QuerySchema};

fn call(name: &str, args: &[&str], geometry: GeometryKind) -> String {
    let args: Vec<_> = args.iter().map(|text| value(text)).collect();
    let schema = QuerySchema { geometry, ..QuerySchema::default() };
    show(&(find(name).unwrap().call)(&args, &FunctionContext::new(QueryContext::default(), &schema)))
}

fn on_globe(name: &str, args: &[&str]) -> String {
    call(name, args, GeometryKind::Geography)
}

fn on_plane(name: &str, args: &[&str]) -> String {
    call(name, args, GeometryKind::Geometry)
}

#[track_caller]
fn near(actual: &str, expected: f64, relative: f64) {
    let actual: f64 = actual.parse().unwrap_or_else(|_| panic!("{actual} is no number"));
    assert!((actual - expected).abs() <= relative * expected.abs(), "{actual} instead of {expected}");
}

fn point(x: f64, y: f64) -> String {
    format!(r#"{{"type":"Point","coordinates":[{x},{y}]}}"#)
}

fn line(positions: &[[f64; 2]]) -> String {
    format!(r#"{{"type":"LineString","coordinates":{positions:?}}}"#)
}

/// A polygon of one ring, which is closed here.
fn polygon(corners: &[[f64; 2]]) -> String {
    let mut ring = corners.to_vec();
    ring.extend(corners.first());
    format!(r#"{{"type":"Polygon","coordinates":[{ring:?}]}}"#)
}

/// The corners of a square, counter-clockwise.
fn square(x: f64, y: f64, side: f64) -> [[f64; 2]; 4] {
    [[x, y], [x + side, y], [x + side, y + side], [x, y + side]]
}

fn reversed<const N: usize>(mut corners: [[f64; 2]; N]) -> [[f64; 2]; N] {
    corners.reverse();
    corners
}

#[test]
fn documented_distances_and_areas_come_out() {
    let here = point(-122.11758113953535, 47.66901087006131);
    near(
        &on_globe("ST_DISTANCE", &[&point(-122.12826822304672, 47.63980239335718), &here]),
        3345.269817267368,
        1e-6,
    );
    near(
        &on_globe("ST_DISTANCE", &[&point(-96.84368664765994, 46.81297794314663), &here]),
        1907438.421299902,
        1e-6,
    );
    let field = polygon(&[[31.8, -5.0], [32.0, -5.0], [32.0, -4.7], [31.8, -4.7]]);
    near(&on_globe("ST_AREA", &[&field]), 735970283.0522614, 1e-6);
}

#[test]
fn documented_polygons_relate_as_documented() {
    let campus = polygon(&[
        [-122.13236581015025, 47.64606476313813],
        [-122.13221982500913, 47.633757091363975],
        [-122.11840598103835, 47.641749416109235],
        [-122.12061400629656, 47.64589264786028],
    ]);
    assert_eq!(on_globe("ST_WITHIN", &[&point(-122.12824857332558, 47.6395516675712), &campus]), "true");
    let highway = polygon(&[
        [-122.13693695285855, 47.64996065621003],
        [-122.1351662656516, 47.64627863318731],
        [-122.13488295569863, 47.646326350048696],
        [-122.1366182291613, 47.650016321952904],
    ]);
    let grounds = polygon(&[
        [-122.14034847687708, 47.6494835188378],
        [-122.14014779899375, 47.64625477474044],
        [-122.13256925774829, 47.646207057813655],
        [-122.13254564858545, 47.64941990019193],
    ]);
    assert_eq!(on_globe("ST_INTERSECTS", &[&highway, &grounds]), "true");
    assert_eq!(on_globe("ST_WITHIN", &[&highway, &grounds]), "false");
}

#[test]
fn edges_on_the_globe_are_arcs() {
    // The edge from 19° to 20° east along 48° north bends a thousandth of a degree to the north.
    let cell = polygon(&[[19.0, 49.0], [19.0, 48.0], [20.0, 48.0], [20.0, 49.0]]);
    assert_eq!(on_globe("ST_WITHIN", &[&point(19.59907, 48.00011), &cell]), "false");
    assert_eq!(on_globe("ST_WITHIN", &[&point(19.59907, 48.00105), &cell]), "true");
    assert_eq!(on_plane("ST_WITHIN", &[&point(19.59907, 48.00011), &cell]), "true");
}

#[test]
fn points_are_in_regions_holes_and_complements() {
    let ring = square(0.0, 0.0, 10.0);
    let (inside, edge, outside) = (point(5.0, 5.0), point(0.0, 5.0), point(15.0, 5.0));
    for surface in [on_globe, on_plane] {
        let counter_clockwise = polygon(&ring);
        assert_eq!(surface("ST_WITHIN", &[&inside, &counter_clockwise]), "true");
        assert_eq!(surface("ST_WITHIN", &[&edge, &counter_clockwise]), "false");
        assert_eq!(surface("ST_WITHIN", &[&outside, &counter_clockwise]), "false");
        assert_eq!(surface("ST_INTERSECTS", &[&edge, &counter_clockwise]), "true");
        assert_eq!(surface("ST_INTERSECTS", &[&counter_clockwise, &edge]), "true");
        assert_eq!(surface("ST_INTERSECTS", &[&outside, &counter_clockwise]), "false");

        let clockwise = polygon(&reversed(ring));
        assert_eq!(surface("ST_WITHIN", &[&inside, &clockwise]), "false");
        assert_eq!(surface("ST_WITHIN", &[&outside, &clockwise]), "true");
        assert_eq!(surface("ST_WITHIN", &[&point(-170.0, -60.0), &clockwise]), "true");
        assert_eq!(surface("ST_INTERSECTS", &[&inside, &clockwise]), "false");

        let with_hole = r#"{"type":"Polygon","coordinates":[
            [[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[4,6],[6,6],[6,4],[4,4]]]}"#;
        assert_eq!(surface("ST_WITHIN", &[&inside, with_hole]), "false");
        assert_eq!(surface("ST_WITHIN", &[&point(2.0, 2.0), with_hole]), "true");
        assert_eq!(surface("ST_WITHIN", &[&polygon(&square(3.0, 3.0, 4.0)), with_hole]), "false");
        assert_eq!(surface("ST_INTERSECTS", &[&polygon(&square(4.5, 4.5, 1.0)), with_hole]), "false");

        let two = r#"{"type":"MultiPolygon","coordinates":[
            [[[0,0],[1,0],[1,1],[0,1],[0,0]]],[[[5,5],[6,5],[6,6],[5,6],[5,5]]]]}"#;
        assert_eq!(surface("ST_WITHIN", &[&point(5.5, 5.5), two]), "true");
        assert_eq!(surface("ST_WITHIN", &[&point(3.0, 3.0), two]), "false");
        assert_eq!(surface("ST_WITHIN", &[two, &counter_clockwise]), "true");
    }
}

#[test]
fn shapes_lie_in_shapes() {
    let large = polygon(&square(0.0, 0.0, 10.0));
    for surface in [on_globe, on_plane] {
        for (inner, outer, within, intersects) in [
            (polygon(&square(2.0, 2.0, 3.0)), &large, "true", "true"),
            (large.clone(), &large, "true", "true"),
            (polygon(&square(5.0, 5.0, 10.0)), &large, "false", "true"),
            (polygon(&square(20.0, 5.0, 1.0)), &large, "false", "false"),
            (polygon(&square(-5.0, -5.0, 30.0)), &large, "false", "true"),
            (line(&[[1.0, 1.0], [9.0, 9.0]]), &large, "true", "true"),
            (line(&[[1.0, 1.0], [19.0, 9.0]]), &large, "false", "true"),
            (line(&[[-5.0, 5.0], [15.0, 5.0]]), &large, "false", "true"),
            (line(&[[20.0, 0.0], [20.0, 5.0]]), &large, "false", "false"),
            (large.clone(), &point(5.0, 5.0), "false", "true"),
            // The complement of a smaller square holds the complement of a larger one.
            (
                polygon(&reversed(square(0.0, 0.0, 10.0))),
                &polygon(&reversed(square(2.0, 2.0, 3.0))),
                "true",
                "true",
            ),
            (polygon(&square(20.0, 5.0, 1.0)), &polygon(&reversed(square(0.0, 0.0, 10.0))), "true", "true"),
            (polygon(&square(2.0, 2.0, 3.0)), &polygon(&reversed(square(0.0, 0.0, 10.0))), "false", "false"),
            (polygon(&reversed(square(0.0, 0.0, 10.0))), &large, "false", "true"),
        ] {
            assert_eq!(surface("ST_WITHIN", &[&inner, outer]), within, "{inner} within {outer}");
            assert_eq!(surface("ST_INTERSECTS", &[&inner, outer]), intersects, "{inner} and {outer}");
            assert_eq!(surface("ST_INTERSECTS", &[outer, &inner]), intersects, "{outer} and {inner}");
        }
    }
    let road = line(&[[0.0, 0.0], [0.0, 4.0]]);
    for surface in [on_globe, on_plane] {
        assert_eq!(surface("ST_WITHIN", &[&line(&[[0.0, 1.0], [0.0, 2.0]]), &road]), "true");
        assert_eq!(surface("ST_WITHIN", &[&point(0.0, 2.5), &road]), "true");
        assert_eq!(surface("ST_WITHIN", &[&point(1.0, 2.5), &road]), "false");
        assert_eq!(surface("ST_INTERSECTS", &[&line(&[[-1.0, 1.0], [1.0, 1.0]]), &road]), "true");
        assert_eq!(surface("ST_INTERSECTS", &[&point(0.0, 0.0), &point(0.0, 0.0)]), "true");
        assert_eq!(surface("ST_INTERSECTS", &[&point(0.0, 0.0), &point(0.0, 1.0)]), "false");
    }
}

#[test]
fn shapes_may_cross_the_antimeridian() {
    let across = polygon(&[[179.0, -1.0], [-179.0, -1.0], [-179.0, 1.0], [179.0, 1.0]]);
    assert_eq!(on_globe("ST_WITHIN", &[&point(179.5, 0.0), &across]), "true");
    assert_eq!(on_globe("ST_WITHIN", &[&point(-179.5, 0.0), &across]), "true");
    assert_eq!(on_globe("ST_WITHIN", &[&point(0.0, 0.0), &across]), "false");
    let around_the_pole = polygon(&[[0.0, 80.0], [90.0, 80.0], [180.0, 80.0], [-90.0, 80.0]]);
    assert_eq!(on_globe("ST_WITHIN", &[&point(45.0, 89.0), &around_the_pole]), "true");
    assert_eq!(on_globe("ST_WITHIN", &[&point(45.0, 70.0), &around_the_pole]), "false");
}

#[test]
fn polygons_larger_than_half_the_globe_are_treated_as_on_a_flat_map() {
    let context = polygon(&[[-180.0, -90.0], [180.0, -90.0], [180.0, 90.0], [-180.0, 90.0]]);
    assert_eq!(on_globe("ST_WITHIN", &[&point(10.0, 50.0), &context]), "true");
    assert_eq!(on_globe("ST_INTERSECTS", &[&polygon(&square(1.0, 1.0, 2.0)), &context]), "true");
    assert_eq!(on_globe("ST_DISTANCE", &[&point(10.0, 50.0), &context]), "0");
}

#[test]
fn distances_are_to_the_closest_point() {
    let box_ = polygon(&square(0.0, 0.0, 10.0));
    near(&on_plane("ST_DISTANCE", &[&point(0.0, 0.0), &point(3.0, 4.0)]), 5.0, 0.0);
    near(&on_plane("ST_DISTANCE", &[&point(13.0, 5.0), &box_]), 3.0, 1e-12);
    near(&on_plane("ST_DISTANCE", &[&polygon(&square(13.0, 14.0, 2.0)), &box_]), 5.0, 1e-12);
    near(&on_plane("ST_DISTANCE", &[&line(&[[-1.0, 12.0], [11.0, 12.0]]), &box_]), 2.0, 1e-12);
    assert_eq!(on_plane("ST_DISTANCE", &[&point(5.0, 5.0), &box_]), "0");
    assert_eq!(on_globe("ST_DISTANCE", &[&point(5.0, 5.0), &box_]), "0");
    // From a degree east of an edge along a meridian, straight west: one degree of longitude.
    let west = on_globe("ST_DISTANCE", &[&point(1.0, 0.0), &line(&[[0.0, -5.0], [0.0, 5.0]])]);
    near(&west, 111_319.490_793, 1e-9);
    // To the middle of an edge of the equator from the north: one degree of latitude at the equator.
    let south = on_globe("ST_DISTANCE", &[&line(&[[-5.0, 0.0], [5.0, 0.0]]), &point(0.3, 1.0)]);
    near(&south, 110_574.388_558, 1e-9);
    // An oblique edge: no sample of it is closer.
    let (from, to) = ([10.0, 40.0], [20.0, 50.0]);
    let here = point(18.0, 42.0);
    let found: f64 = on_globe("ST_DISTANCE", &[&here, &line(&[from, to])]).parse().unwrap();
    let surface = super::surface::Surface::Globe;
    let closest = (0..=10_000)
        .map(|step| {
            let t = f64::from(step) / 10_000.0;
            let place = surface.between(surface.vector(from), surface.vector(to), t).position();
            super::measure::between_points([18.0, 42.0], place, surface)
        })
        .fold(f64::INFINITY, f64::min);
    assert!(found <= closest && found > closest - 1.0, "{found} {closest}");
}

#[test]
fn areas_subtract_holes_and_clockwise_polygons_cover_the_outside() {
    assert_eq!(on_plane("ST_AREA", &[&polygon(&square(0.0, 0.0, 2.0))]), "4");
    assert_eq!(on_plane("ST_AREA", &[&polygon(&reversed(square(0.0, 0.0, 2.0)))]), "4");
    let with_hole = r#"{"type":"Polygon","coordinates":[
        [[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[4,6],[6,6],[6,4],[4,4]]]}"#;
    assert_eq!(on_plane("ST_AREA", &[with_hole]), "96");
    assert_eq!(on_plane("ST_AREA", &[&point(1.0, 1.0)]), "0");
    assert_eq!(on_globe("ST_AREA", &[&line(&[[0.0, 0.0], [1.0, 1.0]])]), "0");
    let small: f64 = on_globe("ST_AREA", &[&polygon(&square(0.0, 0.0, 1.0))]).parse().unwrap();
    let rest: f64 = on_globe("ST_AREA", &[&polygon(&reversed(square(0.0, 0.0, 1.0)))]).parse().unwrap();
    near(&(small + rest).to_string(), 510_065_621_724_088.44, 1e-9);
}

#[test]
fn invalid_objects_have_a_reason() {
    let fine = point(-84.38876194345323, 33.75682784306348);
    let wrong = point(133.756827843063, -184.38876194345323);
    assert_eq!(on_globe("ST_ISVALID", &[&fine]), "true");
    assert_eq!(on_globe("ST_ISVALID", &[&wrong]), "false");
    assert_eq!(on_plane("ST_ISVALID", &[&wrong]), "true");
    assert_eq!(on_globe("ST_ISVALIDDETAILED", &[&fine]), r#"{"valid":true}"#);
    assert_eq!(
        on_globe("ST_ISVALIDDETAILED", &[&wrong]),
        r#"{"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."}"#
    );
    check(&[
        ("ST_ISVALID", "1", "u"),
        ("ST_ISVALID", "u", "u"),
        ("ST_ISVALID", "{}", "false"),
        ("ST_ISVALIDDETAILED", "[]", "u"),
        ("ST_DISTANCE", r#"{} ; {"type":"Point","coordinates":[1,2]}"#, "u"),
        (
            "ST_DISTANCE",
            r#"{"type":"Point","coordinates":[1,2]} ; {"type":"Point","coordinates":[1,95]}"#,
            "u",
        ),
        (
            "ST_DISTANCE",
            r#"{"type":"MultiPoint","coordinates":[]} ; {"type":"Point","coordinates":[1,2]}"#,
            "u",
        ),
        ("ST_WITHIN", r#"1 ; {"type":"Point","coordinates":[1,2]}"#, "u"),
        ("ST_AREA", "null", "u"),
    ]);
}

#[test]
fn edges_between_antipodes_do_not_panic() {
    // The direction of such an edge is undefined; the functions must only return.
    let around = line(&[[0.0, 0.0], [180.0, 0.0]]);
    let belt = polygon(&[[0.0, 0.0], [180.0, 0.0], [0.0, 10.0]]);
    for name in ["ST_DISTANCE", "ST_WITHIN", "ST_INTERSECTS"] {
        for other in [&point(90.0, 45.0), &around, &belt] {
            for first in [&around, &belt] {
                on_globe(name, &[first, other]);
                on_globe(name, &[other, first]);
            }
        }
    }
}
