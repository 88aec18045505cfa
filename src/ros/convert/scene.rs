//! What a person looks at, as markers for RViz and Foxglove.

use super::header;
use crate::data::Scene;
use r2r::geometry_msgs::msg::{Point, Pose, Quaternion, Vector3};
use r2r::std_msgs::msg::ColorRGBA;
use r2r::visualization_msgs::msg::{Marker, MarkerArray};

const TRAIL_WIDTH_M: f64 = 0.004;
const GOAL_DIAMETER_M: f64 = 0.03;
const LETTERS_M: f64 = 0.05;
/// The name of the option stands so far above the tool centre point [m].
const ABOVE_M: f64 = 0.12;

impl From<&Scene> for MarkerArray {
    /// A sphere at the goal, the trail of the tool centre point, and the option in charge, whose colour both wear.
    fn from(scene: &Scene) -> Self {
        let color = color(scene.option, scene.options);
        let marker = |ns: &str, kind: i32, at: [f64; 3], scale: [f64; 3]| Marker {
            header: header(scene.stamp_secs, &scene.frame),
            ns: ns.into(),
            type_: kind,
            action: Marker::ADD as i32,
            pose: Pose { position: point(&at), orientation: Quaternion { w: 1.0, ..Default::default() } },
            scale: Vector3 { x: scale[0], y: scale[1], z: scale[2] },
            color: color.clone(),
            ..Default::default()
        };
        let goal = marker("goal", Marker::SPHERE as i32, scene.goal, [GOAL_DIAMETER_M; 3]);
        let trail = marker("trail", Marker::LINE_STRIP as i32, [0.0; 3], [TRAIL_WIDTH_M, 0.0, 0.0]);
        let [x, y, z] = scene.trail.last().copied().unwrap_or(scene.goal);
        let option = marker("option", Marker::TEXT_VIEW_FACING as i32, [x, y, z + ABOVE_M], [0.0, 0.0, LETTERS_M]);
        let mut markers = vec![goal, Marker { text: format!("option {}", scene.option), ..option }];
        if 2 <= scene.trail.len() {
            markers.push(Marker { points: scene.trail.iter().map(point).collect(), ..trail }); // a line has two ends
        }
        Self { markers }
    }
}

fn point(&[x, y, z]: &[f64; 3]) -> Point {
    Point { x, y, z }
}

/// Of an option among so many: hues evenly around the circle.
fn color(option: u8, options: usize) -> ColorRGBA {
    let hue = 6.0 * f32::from(option) / options.max(1) as f32;
    let part = |height: f32| height.clamp(0.0, 1.0);
    ColorRGBA {
        r: part((hue - 3.0).abs() - 1.0),
        g: part(2.0 - (hue - 2.0).abs()),
        b: part(2.0 - (hue - 4.0).abs()),
        a: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goal_trail_and_option_are_where_they_belong() {
        let scene = Scene {
            stamp_secs: 2.5,
            frame: "panda_link0".into(),
            goal: [0.5, 0.1, 0.3],
            trail: vec![[0.3, 0.0, 0.5], [0.4, 0.0, 0.45]],
            option: 1,
            options: 3,
        };
        let markers = MarkerArray::from(&scene).markers;
        assert_eq!(markers.iter().map(|marker| marker.ns.as_str()).collect::<Vec<_>>(), ["goal", "option", "trail"]);
        assert!(markers.iter().all(|marker| marker.header.frame_id == "panda_link0" && marker.header.stamp.sec == 2));
        assert!(markers.iter().all(|marker| marker.pose.orientation.w == 1.0), "RViz refuses a rotation of length 0");
        // visualization_msgs/Marker: SPHERE 2, TEXT_VIEW_FACING 9, LINE_STRIP 4
        assert_eq!(markers.iter().map(|marker| marker.type_).collect::<Vec<_>>(), [2, 9, 4]);
        assert_eq!(markers[0].pose.position, Point { x: 0.5, y: 0.1, z: 0.3 });
        assert_eq!(markers[2].points[1], Point { x: 0.4, y: 0.0, z: 0.45 });
        assert_eq!((markers[1].text.as_str(), markers[1].pose.position.x), ("option 1", 0.4));
        assert_eq!(markers[1].color.g, 1.0);
        let short = Scene { trail: vec![[0.3, 0.0, 0.5]], ..scene };
        assert_eq!(MarkerArray::from(&short).markers.len(), 2, "RViz complains of a line of one point");
    }

    #[test]
    fn options_have_colours_of_their_own() {
        let of = |option, options| {
            let ColorRGBA { r, g, b, a } = color(option, options);
            assert!([r, g, b].iter().all(|part| (0.0..=1.0).contains(part)) && a == 1.0);
            [r, g, b].map(|part| (part * 255.0) as u8)
        };
        // a third of the circle each: red, green, blue
        assert_eq!([0, 1, 2].map(|option| of(option, 3)), [[255, 0, 0], [0, 255, 0], [0, 0, 255]]);
        assert_eq!(of(0, 1), [255, 0, 0]);
        let all: std::collections::BTreeSet<_> = (0..8).map(|option| of(option, 8)).collect();
        assert_eq!(all.len(), 8);
    }
}
