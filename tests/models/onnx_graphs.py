"""Small ONNX models made by hand, as torch and other exporters write them."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

#: A version of the format that all supported versions of onnxruntime read.
IR_VERSION = 9
OPSETS = [helper.make_opsetid("", 17)]


def rng():
    return np.random.default_rng(0)


def linear_weights(n_in=8, n_out=3):
    """Weights and bias of one layer."""
    return (
        rng().normal(size=(n_in, n_out)).astype(np.float32),
        rng().normal(size=n_out).astype(np.float32),
    )


def logits_model(shape=("n", 1, 8), n_out=3, softmax=False, output="logits", metadata=None):
    """One layer behind a Flatten, with logits, or with probabilities."""
    n_in = int(np.prod(shape[1:]))
    weight, bias = linear_weights(n_in, n_out)
    last = "scores" if softmax else output
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "W", "b"], [last]),
    ]
    if softmax:
        nodes.append(helper.make_node("Softmax", [last], [output], axis=1))
    initializers = [numpy_helper.from_array(weight, "W"), numpy_helper.from_array(bias, "b")]
    return model_of(nodes, initializers, shape, (shape[0], n_out), output, metadata)


def model_of(nodes, initializers, shape, shape_out, output, metadata=None, opsets=OPSETS):
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape_out)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    helper.set_model_props(model, metadata or {})
    return model


def logits_of(X, n_out=3):
    """What `logits_model` computes."""
    flat = np.asarray(X, dtype=np.float32).reshape(len(X), -1)
    weight, bias = linear_weights(flat.shape[1], n_out)
    return flat @ weight + bias


def softmax(scores):
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def with_weights_in(location, **other):
    """A model whose weights are said to be in another file."""
    model = logits_model()
    tensor = model.graph.initializer[0]
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": 0, "length": size, **other}.items():
        tensor.external_data.add(key=key, value=str(value))
    return model


def save(model, path):
    path.write_bytes(model.SerializeToString())
    return path
