"""Every exported name has a numpydoc docstring that says all that a stranger needs.

Checked are the names in `__all__` of `contrafact` and of its packages, and the public methods that
exported classes define themselves. A method that overrides a documented one carries `@override`
and needs no docstring of its own.
"""

import doctest
import importlib
import inspect
import io
import pkgutil
import re

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.explainers.registry import explainer_classes

#: Codes of numpydoc's validation that count, and what they mean.
ENFORCED = {
    "GL03": "no two blank lines in a row",
    "GL05": "no tabs",
    "GL06": "no unknown section",
    "GL07": "sections in numpydoc's order",
    "GL08": "there is a docstring",
    "SS01": "there is a summary",
    "SS02": "the summary starts with a capital letter",
    "SS03": "the summary ends with a period",
    "SS04": "the summary has no leading spaces",
    "SS05": "the summary starts with a verb in the imperative, not in the third person",
    "SS06": "the summary fits in one line",
    "PR01": "every parameter is documented",
    "PR02": "no parameter is documented that does not exist",
    "PR03": "parameters in the order of the signature",
    "PR04": "every parameter has a type",
    "PR05": "a type does not end with a period",
    "PR06": "types are int, bool and str, not integer, boolean and string",
    "PR07": "every parameter has a description",
    "PR09": "a description ends with a period",
    "PR10": "a space before the colon between name and type",
    "RT01": "there is a Returns section if something is returned",
    "RT03": "a returned value has a description",
    "RT05": "its description ends with a period",
    "YD01": "a generator has a Yields section",
}
#: Names of `contrafact` itself also need an example.
ENFORCED_AT_TOP = {"EX01": "there is an example"}

#: Words that start a summary which says what a thing is instead of what it does.
NOT_VERBS = frozenset(
    re.findall(
        r"\w+",
        "A All An And Any Are As At Both By Each Every For From How If In Is It Its No Not Of On "
        "One Per Some That The These This Those To Two What When Where Whether Which Who Whose "
        "Why With",
    )
)


def packages():
    """Packages with public names, by their path."""
    found = {"contrafact": cf}
    for module in pkgutil.iter_modules(cf.__path__, "contrafact."):
        package = importlib.import_module(module.name)
        if hasattr(package, "__all__"):
            found[module.name] = package
    return found


def exported():
    """Exported functions and classes by name; what has several names is listed once."""
    found = {}
    for path, package in reversed(packages().items()):  # contrafact itself comes last
        for name in package.__all__:
            thing = getattr(package, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found.setdefault(thing, f"{path}.{name}")
    return dict(sorted((name, thing) for thing, name in found.items()))


def is_override(member):
    functions = [member, getattr(member, "fget", None), getattr(member, "__func__", None)]
    return any(getattr(function, "__override__", False) for function in functions)


def public_methods(cls):
    """Public methods, class methods and properties that a class defines itself."""
    for name, member in vars(cls).items():
        if name.startswith("_") or is_override(member):
            continue
        if isinstance(member, (classmethod, staticmethod)):
            yield name, member.__func__
        elif inspect.isfunction(member) or isinstance(member, property):
            yield name, member


EXPORTED = exported()
METHODS = {
    f"{path}.{name}": member
    for path, thing in EXPORTED.items()
    if inspect.isclass(thing)
    for name, member in public_methods(thing)
}
AT_TOP = {getattr(cf, name) for name in cf.__all__ if name != "__version__"}


def problems(thing, codes):
    """What is wrong with a docstring, one line each."""
    errors = validate(get_doc_object(thing))["errors"]
    return [f"{code}: {message}" for code, message in errors if code in codes]


def summary_of(thing):
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def starts_with_verb(thing):
    words = summary_of(thing).split()
    return bool(words) and words[0] not in NOT_VERBS


def only_attributes_missing(cls, problem):
    """Whether all that PR01 misses in a class is in its Attributes section."""
    if not problem.startswith("PR01"):
        return False
    documented = {
        name.strip()
        for attribute in get_doc_object(cls)["Attributes"]
        for name in attribute.name.split(",")
    }
    signature = inspect.signature(cls).parameters
    parameters = {
        name.strip()
        for parameter in get_doc_object(cls)["Parameters"]
        for name in parameter.name.split(",")
    }
    public = {name for name in signature if not name.startswith("_")}
    return public <= documented | parameters


def said_in_summary(member, problem):
    """Whether a method of at most one argument says all in its summary."""
    if not problem.startswith(("RT01", "PR01")):
        return False
    arguments = set(inspect.signature(member).parameters) - {"self", "cls"}
    return len(arguments) <= 1


def shares_options(cls, problem):
    """Whether a class describes its own options and refers to its base for the others."""
    documented = {parameter.name for parameter in get_doc_object(cls)["Parameters"]}
    return "**options" in documented and problem.startswith(("PR01", "PR02"))


@pytest.mark.parametrize("name", list(EXPORTED))
def test_docstring_of_exported_name(name):
    thing = EXPORTED[name]
    codes = ENFORCED | ENFORCED_AT_TOP if thing in AT_TOP else ENFORCED
    found = problems(thing, codes)
    if inspect.isclass(thing):
        found = [problem for problem in found if not only_attributes_missing(thing, problem)]
        found = [problem for problem in found if not shares_options(thing, problem)]
    assert not found, "\n".join([name, *found])
    assert starts_with_verb(thing), f"{name}: {summary_of(thing)!r} does not start with a verb"


@pytest.mark.parametrize("name", list(METHODS))
def test_docstring_of_public_method(name):
    member = METHODS[name]
    found = problems(member, ENFORCED)
    if inspect.isfunction(member):
        found = [problem for problem in found if not said_in_summary(member, problem)]
        verb = starts_with_verb(member)
        assert verb, f"{name}: {summary_of(member)!r} does not start with a verb"
    assert not found, "\n".join([name, *found])


@pytest.mark.parametrize("name", list(packages()))
def test_docstring_of_package(name):
    summary = summary_of(packages()[name])
    assert summary.endswith(".")


# --- the checks can fail ------------------------------------------------------------------------


def undocumented(a, b):
    """The sum of two numbers."""
    return a + b


def documented(a, b):
    """Add two numbers.

    Parameters
    ----------
    a, b : float
        The numbers.

    Returns
    -------
    float
        Their sum.
    """
    return a + b


def test_bad_docstrings_are_noticed():
    codes = {problem[:4] for problem in problems(undocumented, ENFORCED | ENFORCED_AT_TOP)}
    assert codes == {"PR01", "RT01", "EX01"}
    assert not starts_with_verb(undocumented)
    assert not problems(documented, ENFORCED)
    assert starts_with_verb(documented)


def test_everything_exported_is_found():
    assert not AT_TOP - set(EXPORTED.values())
    assert len(EXPORTED) > 100
    assert "contrafact.testing.check_explainer" in EXPORTED


# --- examples -----------------------------------------------------------------------------------


def modules():
    """All modules of the package, by name."""
    yield "contrafact"
    for module in pkgutil.walk_packages(cf.__path__, "contrafact."):
        yield module.name


class PlainNumbers(doctest.OutputChecker):
    """Take np.float64(1.0) for 1.0: NumPy 2 shows its scalars with their type, NumPy 1 does not."""

    scalar = re.compile(r"np\.(?:float|int|uint|str|bool)\w*\(([^()]*)\)")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        want, got = (self.scalar.sub(r"\1", text) for text in (want, got))
        return super().check_output(want, got, optionflags)


@pytest.fixture(scope="module")
def example_names():
    """Names that examples may use without defining them: a trained model and series."""
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=1000).fit(data.X_train[:, 0], data.y_train)
    return {
        "model": model,
        "X_train": data.X_train,
        "y_train": data.y_train,
        "X_test": data.X_test,
        "y_test": data.y_test,
    }


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("name", list(modules()))
def test_examples_in_docstrings(name, example_names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(PlainNumbers(), verbose=False, optionflags=doctest.ELLIPSIS)
    report = io.StringIO()
    for test in doctest.DocTestFinder().find(
        importlib.import_module(name), name, extraglobs=example_names
    ):
        runner.run(test, out=report.write)
    assert runner.failures == 0, report.getvalue()


def test_there_are_examples_to_run():
    finder = doctest.DocTestFinder()
    without = [
        name
        for name, cls in explainer_classes().items()
        if not any(t.examples for t in finder.find(cls, name))
    ]
    assert not without, f"explainers without an example: {without}"


def test_a_wrong_example_is_noticed(example_names):
    wrong = ">>> import numpy as np\n>>> np.float64(0.5)\n1.0\n"
    test = doctest.DocTestParser().get_doctest(wrong, dict(example_names), "wrong", None, 0)
    runner = doctest.DocTestRunner(PlainNumbers(), verbose=False)
    runner.run(test, out=lambda text: None)
    assert runner.failures == 1
