"""Writes vectors.json: what Keras's callbacks decide, epoch by epoch. See README.md."""
import json, os, random, sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

METRICS = ["accuracy", "mae"]
KEYS = ["loss"] + METRICS
DIGITS = [2, 3, 9]


def compiled(rate):
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2, use_bias=False, activation="softmax")])
    model.compile(keras.optimizers.SGD(rate), loss="categorical_crossentropy", metrics=METRICS)
    model.train_on_batch(np.zeros((1, 3)), np.array([[0.0, 1.0]]))
    return model


class Saves(keras.callbacks.ModelCheckpoint):
    """Notes that it would save, and saves nothing."""

    def _save_model(self, epoch, batch, logs):
        self.saved = self._should_save_model(epoch, batch, logs, "")


def made(entry):
    (name, args), = entry.items()
    if name == "ModelCheckpoint":
        return Saves("unused.keras", **args)
    return getattr(keras.callbacks, name)(**args)


def number(v):
    return None if v is None else float(v)


def state_of(c):
    out = {"best": number(c.best)}
    if not isinstance(c, Saves):
        out["wait"] = c.wait
    if isinstance(c, keras.callbacks.EarlyStopping):
        out["best_epoch"] = c.best_epoch
    if isinstance(c, keras.callbacks.ReduceLROnPlateau):
        out["cooldown"] = c.cooldown_counter
    if isinstance(c, Saves):
        out["saved"] = bool(c.saved)
    return out


def run(callbacks, rate, logs):
    model = compiled(rate)
    objects = [made(c) for c in callbacks]
    shape = model.get_weights()[0].shape
    for o in objects:
        o.set_model(model)
        o.on_train_begin()
    model.stop_training = False
    epochs = []
    for epoch, log in enumerate(logs):
        model.set_weights([np.full(shape, epoch, "float32")])
        for o in objects:
            o.on_epoch_end(epoch, dict(log))
        rate_now = float(keras.ops.convert_to_numpy(model.optimizer.learning_rate))
        epochs.append({"logs": log, "stop": bool(model.stop_training), "rate": rate_now,
                       "states": [state_of(o) for o in objects]})
        if model.stop_training:
            break
    for o in objects:
        o.on_train_end()
    return {"callbacks": callbacks, "rate": rate, "epochs": epochs, "restored": int(model.get_weights()[0][0][0])}


def watched(callbacks, logs):
    """What they read of the logs; the rest is left out."""
    keys = {args.get("monitor", "val_loss") for c in callbacks for args in c.values()}
    return [{k: v for k, v in log.items() if k in keys} for log in logs]


def series(draw, epochs):
    """A curve that falls or rises with noise, of few digits so that values meet."""
    out = []
    digits = draw.choice(DIGITS)
    for e in range(epochs):
        log = {}
        for key in KEYS:
            for side in ("", "val_"):
                v = 1.0 / (1 + e * draw.random()) + 0.2 * draw.random() - 0.1
                v = 1 - v if key == "accuracy" else v
                log[side + key] = round(v, digits)
                if draw.random() < 0.02:
                    log[side + key] = None
        out.append({k: v for k, v in log.items() if v is not None})
    return out


def monitored(draw, args):
    if draw.random() < 0.8:
        args["monitor"] = draw.choice(["val_loss", "loss", "val_accuracy", "accuracy", "mae", "val_mae"])
    if draw.random() < 0.3:
        args["mode"] = draw.choice(["auto", "min", "max"])
    return args


def early(draw):
    args = monitored(draw, {"patience": draw.randrange(0, 5), "restore_best_weights": draw.random() < 0.5})
    if draw.random() < 0.5:
        args["min_delta"] = draw.choice([0.01, 0.05, -0.02, 1e-9])
    if draw.random() < 0.3:
        args["baseline"] = draw.choice([0.3, 0.5])
    if draw.random() < 0.3:
        args["start_from_epoch"] = draw.randrange(1, 6)
    return {"EarlyStopping": args}


def plateau(draw):
    args = monitored(draw, {"patience": draw.randrange(0, 4), "factor": draw.choice([0.1, 0.5, 0.9, 0.0])})
    if draw.random() < 0.6:
        args["min_delta"] = draw.choice([0, 0.01, 0.05])
    if draw.random() < 0.5:
        args["cooldown"] = draw.randrange(1, 4)
    if draw.random() < 0.5:
        args["min_lr"] = draw.choice([1e-5, 0.004, 0.05])
    return {"ReduceLROnPlateau": args}


def keeps(draw):
    args = monitored(draw, {"save_best_only": draw.random() < 0.8})
    if draw.random() < 0.2:
        args["initial_value_threshold"] = 0.4
    return {"ModelCheckpoint": args}


def whole(case):
    """Keras overwrites the best model with one whose value is not known; Trainyard keeps it: no such case."""
    for c in case["callbacks"]:
        args = c.get("ModelCheckpoint")
        name = (args or {}).get("monitor", "val_loss")
        if args is not None and any(name not in e["logs"] for e in case["epochs"]):
            return False
    return True


def main():
    cases = []
    draw = random.Random(21)
    kinds = [early, plateau, keeps]
    while len(cases) < 90:
        n = len(cases)
        chosen = [kinds[n % 3]] if n < 60 else [early, plateau, keeps, plateau][: draw.randrange(2, 5)]
        callbacks = [k(draw) for k in chosen]
        case = run(callbacks, draw.choice([0.01, 0.001, 0.1]), watched(callbacks, series(draw, 24)))
        if whole(case):
            cases.append(case)
    nan = [{"loss": float("nan"), "val_loss": v} for v in (0.5, 0.4, 0.3, 0.2, 0.1)]
    for name in ("EarlyStopping", "ReduceLROnPlateau"):
        cases.append(run([{name: {"monitor": "loss", "patience": 2}}], 0.1, nan))
    out = {"keras": keras.__version__, "cases": cases}
    text = json.dumps(out, indent=None, separators=(",", ":")).replace('{"callbacks"', '\n{"callbacks"').replace("NaN", '"NaN"')
    sys.stdout.write(text + "\n")


main()
