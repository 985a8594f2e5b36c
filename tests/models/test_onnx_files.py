"""ONNX files: recognized by structure, with no way to other files of the machine."""

import pickle

import numpy as np
import pytest
import torch
from onnx import helper
from onnx_graphs import (
    linear_weights,
    logits_model,
    logits_of,
    model_of,
    save,
    softmax,
    with_weights_in,
)

import contrafact as cf
from contrafact.models.files import find_model
from contrafact.nn import load_model

X = np.random.default_rng(1).normal(size=(7, 1, 8))


def answers(path):
    return cf.as_classifier(load_model(path)).predict_proba(X)


@pytest.mark.parametrize("name", ["net.onnx", "net.bin", "net"])
def test_a_model_is_recognized_by_its_structure(tmp_path, name):
    path = save(logits_model(), tmp_path / name)
    assert find_model(path).kind == "onnx"
    np.testing.assert_allclose(answers(path), softmax(logits_of(X)), atol=1e-6)


def test_a_model_can_be_sent_to_another_process(tmp_path):
    path = save(logits_model(), tmp_path / "net.onnx")
    sent = pickle.loads(pickle.dumps(load_model(path)))
    assert np.array_equal(cf.as_classifier(sent).predict_proba(X), answers(path))


def test_other_files_are_not_taken_for_onnx(tmp_path):
    for content in (b"", b"\x08", b"\x08\x07", b"\x08\x07text", bytes(100), b"hello" * 9):
        (tmp_path / "net.onnx").write_bytes(content)
        with pytest.raises(ValueError, match="not a model of a known kind"):
            load_model(tmp_path / "net.onnx")


def test_as_many_threads_as_torch_uses(tmp_path):
    session = load_model(save(logits_model(), tmp_path / "net.onnx"))
    options = session.get_session_options()
    assert options.intra_op_num_threads == torch.get_num_threads()


def test_a_network_is_not_needed(tmp_path):
    path = save(logits_model(), tmp_path / "net.onnx")
    with pytest.raises(ValueError, match="network applies to a file of weights"):
        load_model(path, network="mlp")


def test_weights_beside_the_model_are_read(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "net.data").write_bytes(linear_weights()[0].tobytes())
    path = save(with_weights_in("part/net.data"), tmp_path / "net.onnx")
    np.testing.assert_allclose(answers(path), softmax(logits_of(X)), atol=1e-6)


@pytest.mark.parametrize("place", ["initializer", "attribute", "function", "sparse"])
@pytest.mark.parametrize(
    "location",
    ["../secret", "/etc/passwd", "link", "nowhere", "", ".", "*/_ORT_MEM_ADDR_/*", "a\0b"],
)
def test_weights_from_elsewhere_are_refused(tmp_path, place, location):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(linear_weights()[0].tobytes())
    (folder / "link").symlink_to(tmp_path / "secret")
    model = with_weights_in(location)
    tensor = model.graph.initializer[0]
    if place == "attribute":
        node = helper.make_node("Constant", [], ["W"], value=tensor)
        model.graph.node.insert(0, node)
        del model.graph.initializer[0]
    if place == "function":
        node = helper.make_node("Constant", [], ["W"], value=tensor)
        model.functions.append(
            helper.make_function("own", "F", [], ["W"], [node], [helper.make_opsetid("", 17)])
        )
        del model.graph.initializer[0]
    if place == "sparse":
        sparse = model.graph.sparse_initializer.add()
        sparse.values.CopyFrom(tensor)
        del model.graph.initializer[0]
    path = save(model, folder / "net.onnx")
    with pytest.raises(ValueError, match=r"net\.onnx .* it takes weights from '") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("other", [{"length": 10**15}, {"offset": 10**15}, {"offset": -8}])
def test_weights_beyond_their_file_are_refused(tmp_path, other):
    (tmp_path / "net.data").write_bytes(linear_weights()[0].tobytes())
    path = save(with_weights_in("net.data", **other), tmp_path / "net.onnx")
    with pytest.raises(ValueError, match=r"net\.onnx cannot be opened as ONNX"):
        load_model(path)


def test_a_name_in_disguise_is_found(tmp_path):
    """Numbers may be written with more bytes than they need, or beyond what readers keep."""
    model = with_weights_in("/etc/passwd").SerializeToString()
    plain = b"\x0a\x08location"
    assert model.count(plain) == 1
    entry = model.index(plain)
    for disguised in (b"\x0a\x88\x80\x00location", b"\x8a\x80\x80\x80\x10\x08location"):
        longer = len(disguised) - len(plain)
        content = bytearray(model[:entry] + disguised + model[entry + len(plain) :])
        content[entry - 1] += longer  # the length of the entry
        grown = _lengths_grown(bytes(content), entry, longer)
        (tmp_path / "net.onnx").write_bytes(grown)
        with pytest.raises(ValueError, match=r"takes weights from '/etc/passwd'|unknown kind"):
            load_model(tmp_path / "net.onnx")


def _lengths_grown(content, entry, longer):
    """Correct the lengths of the tensor and of the graph around an entry."""
    plain = with_weights_in("/etc/passwd")
    for part in (plain.graph.initializer[0], plain.graph):
        size = part.ByteSize()
        written = _number(size)
        place = content.rindex(written, 0, entry)
        grown = _number(size + longer)
        assert len(grown) == len(written)
        content = content[:place] + grown + content[place + len(written) :]
    return content


def _number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_the_format_of_onnxruntime_itself_is_not_read(tmp_path):
    """Bytes 4 to 8 are its mark; here they are the name of a producer."""
    model = logits_model()
    model.ir_version, model.producer_name = 8, "ORTM"
    content = model.SerializeToString()
    assert content[4:8] == b"ORTM"
    (tmp_path / "net.onnx").write_bytes(content)
    np.testing.assert_allclose(answers(tmp_path / "net.onnx"), softmax(logits_of(X)), atol=1e-6)


def test_operators_of_other_libraries_are_refused(tmp_path):
    nodes = [helper.make_node("Run", ["x"], ["y"], domain="my.own")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.own", 1)]
    model = model_of(nodes, [], ["n", 8], ["n", 2], "y", opsets=opsets)
    with pytest.raises(ValueError, match=r"net\.onnx cannot be opened as ONNX: .*my\.own") as told:
        load_model(save(model, tmp_path / "net.onnx"))
    assert "\n" not in str(told.value)


def test_shapes_that_lie_are_refused(tmp_path):
    model = logits_model()
    model.graph.initializer[0].dims[:] = [2**40, 2**20]
    with pytest.raises(ValueError, match=r"net\.onnx cannot be opened as ONNX"):
        load_model(save(model, tmp_path / "net.onnx"))


def test_parts_within_parts_end_somewhere(tmp_path):
    graph = helper.make_graph([], "inner", [], [])
    graph.initializer.add().external_data.add(key="location", value="x")
    content = graph.SerializeToString()
    for _ in range(200):  # a node whose attribute is a graph with a node …
        for field in (6, 5, 1):
            content = bytes([field << 3 | 2]) + _number(len(content)) + content
    (tmp_path / "net.onnx").write_bytes(b"\x08\x09\x3a" + _number(len(content)) + content)
    with pytest.raises(ValueError, match="nested too deeply"):
        load_model(tmp_path / "net.onnx")


def test_damaged_models_end_in_one_line_or_answer(tmp_path):
    good = logits_model(softmax=True).SerializeToString()
    rng = np.random.default_rng(0)
    path = tmp_path / "bad.onnx"
    refused = 0
    for _ in range(150):
        content = bytearray(good)
        if rng.random() < 0.3:
            content = content[: rng.integers(len(content))]
        else:
            for place in rng.integers(len(good), size=rng.integers(1, 4)):
                content[place] = rng.integers(256)
        path.write_bytes(content)
        try:
            cf.as_classifier(load_model(path)).predict_proba(X)
        except ValueError as error:
            refused += 1
            assert "\n" not in str(error)
    assert 50 < refused < 150
