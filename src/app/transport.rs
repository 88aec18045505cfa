//! How the processes of a training reach each other where nobody else is asked for.

use crate::error::{Error, Result};
use std::path::Path;

const PROFILE: &str = include_str!("fastdds.xml");

/// Variables of Fast DDS that name its profiles, of old and new versions.
const NAMES: [&str; 2] = ["FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"];

/// Writes our profile into `folder`, and gives the variables that make nodes use it; none where the user's own say how
/// nodes meet, or where they do not meet over Fast DDS.
pub(super) fn profile(folder: &Path) -> Result<Vec<(String, String)>> {
    let told = |name: &&str| std::env::var_os(name).is_some();
    let other = std::env::var("RMW_IMPLEMENTATION").is_ok_and(|rmw| !rmw.starts_with("rmw_fastrtps"));
    if other || NAMES.iter().chain(&["ROS_AUTOMATIC_DISCOVERY_RANGE"]).any(told) {
        return Ok(Vec::new());
    }
    let path = folder.join("fastdds.xml");
    std::fs::write(&path, PROFILE).map_err(Error::io(&path))?;
    let path = std::path::absolute(&path).map_err(Error::io(&path))?.display().to_string();
    let range = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "SYSTEM_DEFAULT".to_owned()); // else the transports were rmw's own
    Ok(NAMES
        .map(|name| (name, path.clone()))
        .into_iter()
        .chain([range])
        .map(|(name, value)| (name.into(), value))
        .collect())
}
