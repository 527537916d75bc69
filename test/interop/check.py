"""check.py DUMP OUT - TensorFlow and TensorBoard read the output folder OUT; what they say must be what `DUMP OUT` says."""

import os
import subprocess
import sys
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing import event_file_loader, plugin_event_accumulator
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.util import tensor_util


def tensor_lines(out):
    folder = os.path.join(out, "checkpoints")
    state = tf.train.get_checkpoint_state(folder)
    for path in state.all_model_checkpoint_paths:
        name = os.path.basename(path)
        yield f"checkpoint\t{name}\t{'latest' if path == state.model_checkpoint_path else ''}"
        reader = tf.train.load_checkpoint(path)
        types = reader.get_variable_to_dtype_map()
        for variable, shape in reader.get_variable_to_shape_map().items():
            value = reader.get_tensor(variable)  # verifies the checksum
            if types[variable] == tf.string:
                data = b"\0".join(np.asarray(value, dtype=object).reshape(-1).tolist())
            else:
                data = np.ascontiguousarray(value).tobytes()
            yield f"tensor\t{name}\t{variable}\t{types[variable].name}\t{list(shape)}\t{zlib.crc32(data):08x}"


def event_files(out):
    root = os.path.join(out, "summaries")
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(n for n in names if "tfevents" in n):
            yield os.path.relpath(folder, root), os.path.join(folder, name)


def value_line(run, event, value):
    plugin = value.metadata.plugin_data.plugin_name
    array = tensor_util.make_ndarray(value.tensor)
    head = f"{run}\t{value.tag}\t{event.step}"
    if plugin == "scalars":
        return f"scalar\t{head}\t{event.wall_time:.6f}\t{'%.8g' % array.item()}"
    if plugin == "histograms":
        first, last = (array[0][0], array[-1][1]) if len(array) else (0, 0)
        count = array[:, 2].sum() if len(array) else 0
        return f"histogram\t{head}\t{count:.0f}\t{len(array)}\t{'%.8g' % first}\t{'%.8g' % last}"
    if plugin == "text":
        return f"text\t{head}\t{zlib.crc32(array.reshape(-1)[0]):08x}"
    return None


def event_lines(out, seen):
    for run, path in event_files(out):
        plugins = {}
        for event in event_file_loader.EventFileLoader(path).Load():  # checks checksums, migrates old values
            if event.HasField("session_log"):
                yield f"session\t{run}\t{event.step}\t{event.session_log.status}"
            for value in event.summary.value:
                name = plugins.setdefault(value.tag, value.metadata.plugin_data.plugin_name)
                value.metadata.plugin_data.plugin_name = name
                if name == "hparams":
                    seen.append((run, value.tag, value.metadata.plugin_data.content))
                    continue
                line = value_line(run, event, value)
                if line is not None:
                    yield line


def curve_lines(out):
    """As TensorBoard shows them: points that a later START made void are gone."""
    root = os.path.join(out, "summaries")
    for run in sorted({run for run, _ in event_files(out)}):
        accumulator = plugin_event_accumulator.EventAccumulator(os.path.join(root, run), tensor_size_guidance={"scalars": 0})
        accumulator.Reload()
        for tag in accumulator.PluginTagToContent("scalars"):
            points = accumulator.Tensors(tag)
            yield f"curve\t{run}\t{tag}\t{len(points)}\t{points[0].step}\t{points[-1].step}"


def check_hparams(seen):
    for run, tag, content in seen:
        if tag == hparams.EXPERIMENT_TAG:
            experiment = hparams.parse_experiment_plugin_data(content)
            print(f"hparams of {run}: {len(experiment.hparam_infos)} hparams, metrics {[m.name.tag for m in experiment.metric_infos]}")
        elif tag == hparams.SESSION_START_INFO_TAG:
            start = hparams.parse_session_start_info_plugin_data(content)
            print(f"hparams of {run}: group {start.group_name!r}, {sorted(start.hparams)}")
            assert start.hparams, "a session without hparams"
        elif tag == hparams.SESSION_END_INFO_TAG:
            print(f"hparams of {run}: session ended with status {hparams.parse_session_end_info_plugin_data(content).status}")


def main():
    dump, out = sys.argv[1:]
    ours = sorted(subprocess.run([dump, out], check=True, capture_output=True, text=True).stdout.splitlines())
    seen = []
    theirs = sorted([*tensor_lines(out), *event_lines(out, seen), *curve_lines(out)])
    check_hparams(seen)
    kinds = {}
    for line in ours:
        kinds[line.split("\t")[0]] = kinds.get(line.split("\t")[0], 0) + 1
    print("ours:", ", ".join(f"{n} {kind}s" for kind, n in kinds.items()))
    missing, extra = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
    for line in missing[:20]:
        print("only TensorFlow says:", line)
    for line in extra[:20]:
        print("only we say:         ", line)
    if missing or extra or len(ours) != len(theirs):
        sys.exit(f"FAILED: {len(missing)} + {len(extra)} lines differ ({len(ours)} ours, {len(theirs)} theirs)")
    print(f"passed: TensorFlow {tf.__version__} and TensorBoard agree on all {len(ours)} lines")


main()
