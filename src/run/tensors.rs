//! Tensors to safetensors and back. The reader allocates no more than the file holds.

use crate::contract::{Contract, Normaliser};
use crate::data::Vectors;
use crate::error::{Error, Result};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;

const MEAN: &str = "normaliser.mean";
const STD: &str = "normaliser.std";
const CLIP: &str = "normaliser.clip";
const COUNT: &str = "normaliser.count";

struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

fn floats(shape: Vec<usize>, values: &[f32]) -> Tensor {
    Tensor { dtype: Dtype::F32, shape, bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect() }
}

fn doubles(values: &[f64]) -> Tensor {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor { dtype: Dtype::F64, shape: vec![values.len()], bytes }
}

fn encode(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    let views = tensors.iter().map(|(name, tensor)| {
        TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes).map(|view| (name.as_str(), view))
    });
    views
        .collect::<Result<Vec<_>, _>>()
        .and_then(|views| safetensors::serialize(views, None))
        .map_err(|error| Error::invalid(format!("the tensors cannot be written as safetensors: {error}")))
}

/// `policy.safetensors`: one tensor a segment of the contract's layout, and the normaliser.
pub(super) fn encode_policy(contract: &Contract, parameters: &[f32], normaliser: &Normaliser) -> Result<Vec<u8>> {
    let mut tensors = BTreeMap::new();
    for segment in contract.layout().segments {
        let values = parameters.get(segment.range()).unwrap_or_default();
        tensors.insert(segment.name, floats(segment.shape, values));
    }
    tensors.insert(MEAN.into(), floats(vec![normaliser.mean.len()], &normaliser.mean));
    tensors.insert(STD.into(), floats(vec![normaliser.std.len()], &normaliser.std));
    tensors.insert(CLIP.into(), floats(vec![1], &[normaliser.clip]));
    tensors.insert(COUNT.into(), doubles(&[normaliser.count]));
    encode(&tensors)
}

/// `learner.safetensors`; refuses floats that are not finite and names that are used twice.
pub(super) fn encode_learner(state: &Vectors) -> Result<Vec<u8>> {
    let mut tensors: BTreeMap<_, _> =
        state.floats.iter().map(|(name, values)| (name.clone(), floats(vec![values.len()], values))).collect();
    let unusual = |name: &String| Error::invalid(format!("the learner's `{name}` holds a float that is not finite"));
    if let Some((name, _)) = state.floats.iter().find(|(_, values)| !values.iter().all(|value| value.is_finite())) {
        return Err(unusual(name));
    }
    for (name, values) in &state.doubles {
        if !values.iter().all(|value| value.is_finite()) {
            return Err(unusual(name));
        }
        if tensors.insert(name.clone(), doubles(values)).is_some() {
            return Err(Error::invalid(format!("the learner's `{name}` is there both as floats and as doubles")));
        }
    }
    encode(&tensors)
}

fn parse(bytes: &[u8]) -> Result<SafeTensors<'_>> {
    SafeTensors::deserialize(bytes).map_err(|error| Error::invalid(format!("not a safetensors file: {error}")))
}

fn read_floats(view: &TensorView<'_>) -> Vec<f32> {
    let (chunks, _) = view.data().as_chunks();
    chunks.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

fn read_doubles(view: &TensorView<'_>) -> Vec<f64> {
    let (chunks, _) = view.data().as_chunks();
    chunks.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect()
}

fn expect<'a>(file: &'a SafeTensors<'_>, name: &str, dtype: Dtype, shape: &[usize]) -> Result<TensorView<'a>> {
    let view = file.tensor(name).map_err(|_| Error::invalid(format!("it has no tensor `{name}`")))?;
    if view.dtype() == dtype && view.shape() == shape {
        return Ok(view);
    }
    let (found, found_shape) = (view.dtype(), view.shape());
    Err(Error::invalid(format!("its `{name}` is {found} {found_shape:?}; the contract needs {dtype} {shape:?}")))
}

/// Parameters in the contract's layout, and the normaliser.
pub(super) fn decode_policy(bytes: &[u8], contract: &Contract) -> Result<(Vec<f32>, Normaliser)> {
    plausible(contract)?;
    let file = parse(bytes)?;
    let mut parameters = Vec::new();
    let segments = contract.layout().segments;
    for segment in &segments {
        parameters.append(&mut read_floats(&expect(&file, &segment.name, Dtype::F32, &segment.shape)?));
    }
    let obs = [contract.obs_size()];
    let clip = read_floats(&expect(&file, CLIP, Dtype::F32, &[1])?);
    let count = read_doubles(&expect(&file, COUNT, Dtype::F64, &[1])?);
    let normaliser = Normaliser {
        mean: read_floats(&expect(&file, MEAN, Dtype::F32, &obs)?),
        std: read_floats(&expect(&file, STD, Dtype::F32, &obs)?),
        clip: clip.first().copied().unwrap_or_default(),
        count: count.first().copied().unwrap_or_default(),
    };
    let (found, want) = (file.len(), segments.len() + 4);
    if found != want {
        return Err(Error::invalid(format!("it has {found} tensors; the contract needs {want}")));
    }
    Ok((parameters, normaliser))
}

/// What [`encode_learner`] wrote.
pub(super) fn decode_learner(bytes: &[u8]) -> Result<Vectors> {
    let file = parse(bytes)?;
    let mut state = Vectors::default();
    for (name, view) in file.iter() {
        match view.dtype() {
            Dtype::F32 => drop(state.floats.insert(name.to_owned(), read_floats(&view))),
            Dtype::F64 => drop(state.doubles.insert(name.to_owned(), read_doubles(&view))),
            other => return Err(Error::invalid(format!("its `{name}` is {other}; F32 or F64 was expected"))),
        }
    }
    Ok(state)
}

/// Refuses a contract whose layout alone would fill the memory: sizes far beyond any that this program trains.
fn plausible(contract: &Contract) -> Result<()> {
    const WIDTH: usize = 1 << 16;
    const LAYERS: usize = 64;
    const OPTIONS: usize = 255;
    let sizes = [
        ("options", contract.options.count, OPTIONS),
        ("joints", contract.joints.len(), OPTIONS),
        ("hidden layers", contract.network.hidden.len(), LAYERS),
        ("units in a hidden layer", contract.network.hidden.iter().copied().max().unwrap_or(0), WIDTH),
        ("fields of the observation", contract.observation.len(), WIDTH),
        ("floats in a field", contract.observation.iter().map(|field| field.len).max().unwrap_or(0), WIDTH),
    ];
    match sizes.into_iter().find(|&(_, found, most)| most < found) {
        Some((what, found, most)) => {
            Err(Error::invalid(format!("the contract has {found} {what}; no more than {most} are read")))
        }
        None => Ok(()),
    }
}
