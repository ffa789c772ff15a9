#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What functions of scores reach besides tensors: numbers of Python, in closures, objects and
classes. They are traced once, and again where a number is another."""

import collections
import dataclasses
import enum
import functools
import sys
import types
import typing

import pytest

torch = pytest.importorskip("torch", reason="no PyTorch")

from attn.torch import likeness, trace  # noqa: E402

NUMBERS = [5]


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(trace, "_KNOWN", {})
    monkeypatch.setattr(likeness, "_known", {})
    NUMBERS[0] = 5


@pytest.fixture
def traced(monkeypatch):
    calls, trace_it = [], trace.traced
    monkeypatch.setattr(trace, "traced", lambda *given: calls.append(given) or trace_it(*given))
    return calls


def region(function):
    return trace.region(function, "score").lines


def of_class():
    class Config:
        width = 5
    return lambda s, b, h, q, k: s * Config.width, lambda: setattr(Config, "width", 6)


def of_inner_class():
    class Config:
        class Inner:
            width = 5
    return lambda s, b, h, q, k: s * Config.Inner.width, lambda: setattr(Config.Inner, "width", 6)


def of_base_class():
    class Base:
        width = 5

    class Score(Base):
        def __call__(self, s, b, h, q, k):
            return s * self.width
    return Score(), lambda: setattr(Base, "width", 6)


def of_module_class():
    class Score(torch.nn.Module):
        factor = 5.0

        def forward(self, s, b, h, q, k):
            return s * self.factor
    return Score(), lambda: setattr(Score, "factor", 6.0)


def of_inner_modules():
    class Inner(torch.nn.Module):
        factor = 5.0

        def forward(self, s):
            return s * self.factor
    inner = torch.nn.Sequential(Inner(), torch.nn.ModuleList([Inner()])[0])
    return lambda s, b, h, q, k: inner(s), lambda: setattr(inner[1], "factor", 6.0)


def of_all_modules():
    class Inner(torch.nn.Module):
        factor = 5.0
    inner = torch.nn.Sequential(Inner(), Inner())
    return (lambda s, b, h, q, k: s * sum(x.factor for x in inner.children()),
            lambda: setattr(inner[1], "factor", 6.0))


def _of_method(kind):
    class Scores:
        @staticmethod
        def static(s):
            return s * NUMBERS[0]

        @classmethod
        def of_class(cls, s):
            return s * NUMBERS[0]

        @property
        def number(self):
            return NUMBERS[0]
    scores = Scores()
    functions = {
        "static": lambda s, b, h, q, k: scores.static(s), "class": lambda s, b, h, q, k: scores.of_class(s),
        "property": lambda s, b, h, q, k: s * scores.number, "of class": lambda s, b, h, q, k: Scores.static(s),
        "bound": scores.of_class}
    if kind == "bound":
        return lambda s, b, h, q, k, bound=scores.of_class: bound(s), lambda: NUMBERS.__setitem__(0, 6)
    return functions[kind], lambda: NUMBERS.__setitem__(0, 6)


class Operators:
    """An object that operators and builtins ask."""

    def __init__(self):
        self.inside = 5

    def __mul__(self, x):
        return x * self.inside

    def __len__(self):
        return self.inside

    def __float__(self):
        return float(self.inside)

    def __index__(self):
        return self.inside

    def __iter__(self):
        return iter([self.inside])

    def __getitem__(self, at):
        return self.inside

    def __contains__(self, x):
        return x == self.inside

    def __lt__(self, x):
        return self.inside < x

    def __enter__(self):
        return self.inside

    def __exit__(self, *_):
        pass


def _with(x, s):
    with x as number:
        return s * number


OPERATORS = {
    "mul": lambda x, s: x * s, "len": lambda x, s: s * len(x), "float": lambda x, s: s * float(x),
    "range": lambda x, s: s * len(range(x)), "iter": lambda x, s: s * sum(n for n in x), "item": lambda x, s: s * x[0],
    "in": lambda x, s: s * (2 if 5 in x else 3), "lt": lambda x, s: s * (2 if x < 6 else 3), "with": _with,
}


def _of_operator(name):
    x, use = Operators(), OPERATORS[name]
    return lambda s, b, h, q, k: use(x, s), lambda: setattr(x, "inside", 6)


class Named(typing.NamedTuple):
    width: int

    def scaled(self, s):
        return s * self.width * NUMBERS[0]


class Kind(enum.Enum):
    ONE = 1

    def scaled(self, s):
        return s * NUMBERS[0]


@dataclasses.dataclass
class Data:
    width: int = 5


@dataclasses.dataclass
class Slots:
    __slots__ = ("width",)
    width: int


class Ints(list):
    pass


class Dictionary(dict):
    pass


class Int(int):
    pass


def _of_object(x, name="width"):
    return lambda s, b, h, q, k: s * getattr(x, name), lambda: setattr(x, name, 6)


def of_attribute_of_function():
    def scaled(s):
        return s * scaled.width
    scaled.width = 5
    return lambda s, b, h, q, k: scaled(s), lambda: setattr(scaled, "width", 6)


def of_list_subclass():
    x = Ints([1])
    x.width = 5
    return lambda s, b, h, q, k: s * x.width, lambda: setattr(x, "width", 6)


def of_items(x):
    return lambda s, b, h, q, k: s * x["width"], lambda: x.update(width=6)


def of_bound_builtin():
    x = {"width": 5}
    get = x.get
    return lambda s, b, h, q, k: s * get("width"), lambda: x.update(width=6)


def of_import():
    module = types.ModuleType("attn_test_config")
    module.WIDTH = 5
    sys.modules[module.__name__] = module

    def score(s, b, h, q, k):
        import attn_test_config
        return s * attn_test_config.WIDTH
    return score, lambda: setattr(module, "WIDTH", 6)


def of_import_from():
    module = types.ModuleType("attn_test_config")
    module.WIDTH = 5
    sys.modules[module.__name__] = module

    def score(s, b, h, q, k):
        from attn_test_config import WIDTH
        return s * WIDTH
    return score, lambda: setattr(module, "WIDTH", 6)


def of_closure(before, after, use=lambda s, x: s * x):
    x = before

    def change():
        nonlocal x
        x = after
    return lambda s, b, h, q, k: use(s, x), change


def of_numpy(kind):
    numpy = pytest.importorskip("numpy")
    return of_closure(getattr(numpy, kind)(5), getattr(numpy, kind)(6))


def of_keyword_default():
    def score(s, b, h, q, k, *, width=5):
        return s * width
    return score, lambda: score.__kwdefaults__.update(width=6)


def of_recursion():
    factor = [5]

    def power(s, n):
        return s if n == 0 else factor[0] * power(s, n - 1)
    return lambda s, b, h, q, k: power(s, 3), lambda: factor.__setitem__(0, 6)


def of_wrapper():
    number = [5]

    def wrapped(function):
        @functools.wraps(function)
        def inner(*given):
            return function(*given) * number[0]
        return inner
    return wrapped(lambda s, b, h, q, k: s + 1), lambda: number.__setitem__(0, 6)


def of_compiled():
    number = [5]
    return torch.compile(lambda s, b, h, q, k: s * number[0], backend="eager"), lambda: number.__setitem__(0, 6)


def helped(s, config):
    return s * config.width


class Whole:
    """A score that others compute: a helper, or a base class."""

    def __init__(self, how="base"):
        self.width, self.how = 5, how

    def __call__(self, s, b, h, q, k):
        return s * self.width


class OfSuper(Whole):
    def __call__(self, *given):
        return super().__call__(*given)


class OfBase(Whole):
    def __call__(self, *given):
        return Whole.__call__(self, *given)


class OfHelper(Whole):
    def __call__(self, s, *at):
        return helped(s, self)


def _of_whole(kind):
    score = kind()
    return score, lambda: setattr(score, "width", 6)


def of_helper(make):
    config = types.SimpleNamespace(width=5)
    return make(config), lambda: setattr(config, "width", 6)


def of_base_method():
    class Base:
        def scaled(self, s):
            return s * NUMBERS[0]

    class Score(Base):
        def scaled(self, s):
            return super().scaled(s) + 1

        def __call__(self, s, b, h, q, k):
            return self.scaled(s)
    return Score(), lambda: NUMBERS.__setitem__(0, 6)


def of_attribute_of_tensor():
    table = torch.ones(3)
    table.width = 5
    return lambda s, b, h, q, k: s * table.width, lambda: setattr(table, "width", 6)


CASES = {
    "super()": lambda: _of_whole(OfSuper), "a named base": lambda: _of_whole(OfBase),
    "an object given to a function": lambda: _of_whole(OfHelper), "a method of super()": of_base_method,
    "a number that a helper reads": lambda: of_helper(lambda config: lambda s, b, h, q, k: helped(s, config)),
    "a default that a helper reads": lambda: of_helper(lambda config: lambda s, b, h, q, k, x=config: helped(s, x)),
    "a part of a list that a helper reads": lambda: of_helper(lambda config: lambda s, b, h, q, k: helped(s, [config][0])),
    "a helper in a list": lambda: of_helper(lambda config, all=[helped]: lambda s, b, h, q, k: all[0](s, config)),
    "a helper of a partial": lambda: of_helper(lambda config: functools.partial(
        lambda x, s, b, h, q, k: helped(s, x), config)),
    "a class": of_class, "an inner class": of_inner_class, "a base class": of_base_class,
    "the class of a module": of_module_class, "inner modules": of_inner_modules, "all modules": of_all_modules,
    **{f"a method: {kind}": functools.partial(_of_method, kind) for kind in ("static", "class", "property", "of class", "bound")},
    **{f"an operator: {name}": functools.partial(_of_operator, name) for name in OPERATORS},
    "a method of a tuple": lambda: (lambda s, b, h, q, k, x=Named(2): x.scaled(s), lambda: NUMBERS.__setitem__(0, 6)),
    "a method of an enum": lambda: (lambda s, b, h, q, k, x=Kind.ONE: x.scaled(s), lambda: NUMBERS.__setitem__(0, 6)),
    "a dataclass": lambda: _of_object(Data()), "slots": lambda: _of_object(Slots(5)),
    "a namespace": lambda: _of_object(types.SimpleNamespace(width=5)),
    "a name that is computed": lambda: _of_object(types.SimpleNamespace(width_of_all=5), "_".join(["width", "of", "all"])),
    "a function's attribute": of_attribute_of_function, "an attribute of a list": of_list_subclass,
    "a dictionary": lambda: of_items({"width": 5}), "an ordered dictionary": lambda: of_items(collections.OrderedDict(width=5)),
    "a default dictionary": lambda: of_items(collections.defaultdict(int, width=5)),
    "a bound builtin": of_bound_builtin, "an import": of_import, "an import of a name": of_import_from,
    "a number": lambda: of_closure(5, 6), "another type": lambda: of_closure(5, 5.5),
    "a set": lambda: of_closure({5}, {6}, lambda s, x: s * sum(x)),
    "a range": lambda: of_closure(range(5), range(1, 5), lambda s, x: s * (x.start + 2)),
    "many integers": lambda: of_closure([*range(100)], [*range(1, 101)], lambda s, x: s * x[70]),
    "many floats": lambda: of_closure([0.0] * 100, [-0.0] * 100, lambda s, x: s * x[70]),
    "an integer of NumPy": lambda: of_numpy("int64"), "a float of NumPy": lambda: of_numpy("float32"),
    "a keyword": of_keyword_default, "recursion": of_recursion, "a wrapper": of_wrapper, "a compiled function": of_compiled,
}
# Traced in every call, as nothing tells what is in them.
OPAQUE = {
    "a dictionary of a class of its own": lambda: of_items(Dictionary(width=5)),
    "an integer of a class of its own": lambda: of_closure(Int(5), Int(6)),
    "many of several types": lambda: of_closure([1, 2.0] * 50, [1, 2.5] * 50, lambda s, x: s * x[71]),
    "reflection": lambda: _reflecting(), "an attribute of a tensor": of_attribute_of_tensor,
}


def _reflecting():
    x = types.SimpleNamespace(width=5)
    return lambda s, b, h, q, k: s * vars(x)["".join(["wi", "dth"])], lambda: setattr(x, "width", 6)


@pytest.mark.parametrize("name", [*CASES, *OPAQUE])
def test_other_numbers(name, traced):
    function, change = {**CASES, **OPAQUE}[name]()
    first = region(function)
    assert region(function) == region(function) == first
    assert len(traced) == (3 if name in OPAQUE else 1)
    assert name in OPAQUE or likeness.find((function,))[0] is not None
    change()
    assert region(function) != first
    assert region(function) != first


def test_the_same_object_in_two_places():
    """One list, and two that are equal."""
    one, other = [5.0], [5.0]

    def make(x, y):
        return lambda s, b, h, q, k: s * x[0] + y[0] * q
    first = region(make(one, one))
    assert region(make(one, other)) == first
    other[0] = 6.0
    assert region(make(one, other)) != first
    assert region(make(one, one)) == first
