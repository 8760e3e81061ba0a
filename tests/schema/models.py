# ruff: noqa: UP045  (both spellings of unions are tested)
"""Types of every family, for the tests of decoding and of schemas."""

import enum
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, NotRequired, Optional, TypedDict

import msgspec
import pydantic
from annotated_types import Ge, Len


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    ONE = 1
    HALF = 0.5
    NAME = "name"


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Circle:
    x: int
    radius: float = 1.0
    note: str | None = None


@dataclass
class Tree:
    value: int
    children: "list[Tree]" = field(default_factory=list)


@dataclass
class Drawing:
    """Holds a union that msgspec refuses, and itself."""

    shape: Point | Circle
    inner: "Optional[Drawing]" = None


@dataclass
class Counted:
    count: Annotated[int, Ge(1)]
    name: Annotated[str, "the name"] = "n"


class Row(NamedTuple):
    key: str
    value: int = 0


class Options(TypedDict):
    depth: int
    label: NotRequired[str]


class Account(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    account_id: int
    shape: Point | Circle | None = None


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    tricks: list[str]


class User(pydantic.BaseModel):
    """A user."""

    name: str = pydantic.Field(min_length=1, description="the login")
    age: int | None = None
    tags: Annotated[list[str], Len(0, 3)] = []


class Node(pydantic.BaseModel):
    value: int
    next: Optional["Node"] = None


@pydantic.dataclasses.dataclass
class Checked:
    x: int = pydantic.Field(ge=1)


@dataclass
class Team:
    lead: User
    members: list[User] = field(default_factory=list)


@dataclass
class Left:
    """Refers to Right, which refers back; both hold a union that msgspec refuses."""

    shape: Point | Circle
    other: "Right | None" = None


@dataclass
class Right:
    shape: Circle | Point
    back: "Left | Point | None" = None


@dataclass
class Unreadable:
    keys: dict[Point, int]
