"""Classes that hold values: the same as those of `dataclasses`, made sooner."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from rooflint.plain import changing, field, plain, replace


@plain
class Point:
    x: int
    y: int = 0
    seen: str = field(default="", compare=False)


@changing
class Bag:
    items: list[int] = field(default_factory=list[int])


@plain
class Nothing:
    pass


def test_values_are_the_same_if_what_counts_in_them_is() -> None:
    assert Point(1, seen="here") == Point(1, 0, "there") != Point(1, 1)
    assert len({Point(1, seen="here"), Point(1, seen="there"), Point(2)}) == 2
    assert Point(1) != (1, 0, "")
    nan = float("nan")
    assert Point(nan) == Point(nan)  # pyright: ignore[reportArgumentType]
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())


def test_what_may_change_is_no_key_and_shares_nothing() -> None:
    one, other = Bag(), Bag()
    one.items.append(1)
    assert (one.items, other.items) == ([1], [])
    assert one != other
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_a_value_has_its_fields_and_no_others() -> None:
    assert repr(Point(1, y=2)) == "Point(x=1, y=2, seen='')"
    with pytest.raises(TypeError, match="x"):
        Point()  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="z"):
        Point(1, z=2)  # pyright: ignore[reportCallIssue]
    with pytest.raises(AttributeError):
        Point(1).z = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_the_first_objects_and_the_many_after_them_are_made_alike() -> None:
    @plain
    class Size:
        width: int
        height: int = 1
        names: list[str] = field(default_factory=list[str])

    for _ in range(200):
        assert repr(Size(2, names=["a"])) == repr(Size(2, 1, ["a"]))
        assert Size(3).names == [] and Size(3).names is not Size(3).names


@pytest.mark.parametrize("made_before", [0, 200])
def test_too_few_values_or_too_many_make_no_object(made_before: int) -> None:
    @plain
    class Size:
        width: int
        height: int = 1

    for _ in range(made_before):
        Size(1)
    for values, named in [((), {}), ((1, 2, 3), {}), ((1,), {"width": 1}), ((1,), {"depth": 1})]:
        with pytest.raises(TypeError):
            Size(*values, **named)


def test_copies_are_made_by_us_by_dataclasses_and_by_pickle() -> None:
    assert replace(Point(1, 2), y=3) == Point(1, 3)
    assert dataclasses.replace(Point(1, 2), x=3) == Point(3, 2)
    assert dataclasses.asdict(Point(1, 2, "here")) == {"x": 1, "y": 2, "seen": "here"}
    assert [each.compare for each in dataclasses.fields(Point)] == [True, True, False]
    assert pickle.loads(pickle.dumps(Point(1, 2, "here"))).seen == "here"
