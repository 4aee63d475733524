"""The card schema, twice: compiled to closures that only say yes or no (fast), and jsonschema's, which says why.

jsonschema needs 12 to 50 ms for a card of this schema, too long for a server on an event loop; the closures need less
than one. A test holds both to the same verdict.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["explain", "is_valid", "load"]

type Test = Callable[[Any], bool]

_TYPES: dict[str, Test] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: (isinstance(v, int) and not isinstance(v, bool)) or (isinstance(v, float) and v.is_integer()),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}
_NOTES = frozenset({"$schema", "$id", "$comment", "$defs", "title", "description", "examples"})


@cache
def load(*, strict: bool) -> dict[str, Any]:
    """The schema; strict without the properties and variants the documentation leaves unclear."""
    text = resources.files(__package__).joinpath("card-2.0.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    if strict:
        schema = copy.deepcopy(schema)
        _drop_unclear(schema)
    return schema


def _unclear(node: Any) -> bool:
    return isinstance(node, dict) and str(node.get("$comment", "")).startswith("unclear:")


def _drop_unclear(node: Any) -> None:
    if isinstance(node, dict):
        properties = node.get("properties")
        if isinstance(properties, dict):
            node["properties"] = {name: value for name, value in properties.items() if not _unclear(value)}
        if isinstance(node.get("anyOf"), list):
            node["anyOf"] = [variant for variant in node["anyOf"] if not _unclear(variant)]
        for value in node.values():
            _drop_unclear(value)
    elif isinstance(node, list):
        for value in node:
            _drop_unclear(value)


@cache
def _validator(*, strict: bool) -> Any:
    from jsonschema import Draft202012Validator  # half a second to import, and only refused cards need it

    return Draft202012Validator(load(strict=strict))


def explain(card: Any, *, strict: bool) -> Iterator["ValidationError"]:
    """Every reason the schema refuses the card; slow."""
    yield from _validator(strict=strict).iter_errors(card)


@cache
def _compiled(*, strict: bool) -> Test:
    return _Compiler(load(strict=strict)).test(load(strict=strict))


def is_valid(card: Any, *, strict: bool) -> bool:
    """Whether the schema accepts the card; fast."""
    return _compiled(strict=strict)(card)


class _Compiler:
    """Turns the part of JSON Schema this schema uses into closures; a keyword it does not know is an error."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._refs: dict[str, Test] = {}

    def test(self, schema: Any) -> Test:
        if isinstance(schema, bool):
            return (lambda v: True) if schema else (lambda v: False)
        tests = [made for name in schema if name not in _NOTES for made in [self._keyword(name, schema)] if made]
        if len(tests) == 1:
            return tests[0]
        return lambda v: all(test(v) for test in tests)

    def _keyword(self, name: str, schema: dict[str, Any]) -> Test | None:
        if name in ("then", "minContains", "maxContains"):
            return None  # read together with `if` and `contains`
        make: Callable[[Any, dict[str, Any]], Test] = getattr(self, "_" + name.lstrip("$").lower())
        return make(schema[name], schema)

    def _ref(self, ref: str, _: dict[str, Any]) -> Test:
        name = ref.removeprefix("#/$defs/")

        def later(v: Any) -> bool:
            test = self._refs.get(name)
            if test is None:
                test = self._refs[name] = self.test(self._root["$defs"][name])
            return test(v)

        return later

    def _type(self, wanted: str | list[str], _: dict[str, Any]) -> Test:
        if isinstance(wanted, str):
            return _TYPES[wanted]
        tests = [_TYPES[name] for name in wanted]
        return lambda v: any(test(v) for test in tests)

    def _const(self, value: Any, _: dict[str, Any]) -> Test:
        return lambda v: type(v) is type(value) and v == value

    def _enum(self, values: list[str | int], _: dict[str, Any]) -> Test:
        words = frozenset(values)
        return lambda v: isinstance(v, (str, int, float)) and not isinstance(v, bool) and v in words

    def _properties(self, properties: dict[str, Any], _: dict[str, Any]) -> Test:
        tests = {name: self.test(value) for name, value in properties.items()}

        def holds(v: Any) -> bool:
            if not isinstance(v, dict):
                return True
            return all(tests[name](value) for name, value in v.items() if name in tests)

        return holds

    def _additionalproperties(self, schema: Any, parent: dict[str, Any]) -> Test:
        known = frozenset(parent.get("properties", ()))
        if schema is False:
            return lambda v: not isinstance(v, dict) or v.keys() <= known
        test = self.test(schema)
        return lambda v: not isinstance(v, dict) or all(test(x) for name, x in v.items() if name not in known)

    def _propertynames(self, schema: Any, _: dict[str, Any]) -> Test:
        test = self.test(schema)
        return lambda v: not isinstance(v, dict) or all(test(name) for name in v)

    def _required(self, names: list[str], _: dict[str, Any]) -> Test:
        wanted = frozenset(names)
        return lambda v: not isinstance(v, dict) or v.keys() >= wanted

    def _pattern(self, pattern: str, _: dict[str, Any]) -> Test:
        search = re.compile(pattern).search
        return lambda v: not isinstance(v, str) or search(v) is not None

    def _minlength(self, least: int, _: dict[str, Any]) -> Test:
        return lambda v: not isinstance(v, str) or len(v) >= least

    def _maxlength(self, most: int, _: dict[str, Any]) -> Test:
        return lambda v: not isinstance(v, str) or len(v) <= most

    def _minimum(self, least: float, _: dict[str, Any]) -> Test:
        return lambda v: not _TYPES["number"](v) or v >= least

    def _maximum(self, most: float, _: dict[str, Any]) -> Test:
        return lambda v: not _TYPES["number"](v) or v <= most

    def _exclusiveminimum(self, below: float, _: dict[str, Any]) -> Test:
        return lambda v: not _TYPES["number"](v) or v > below

    def _items(self, schema: Any, _: dict[str, Any]) -> Test:
        test = self.test(schema)
        return lambda v: not isinstance(v, list) or all(test(x) for x in v)

    def _minitems(self, least: int, _: dict[str, Any]) -> Test:
        return lambda v: not isinstance(v, list) or len(v) >= least

    def _maxitems(self, most: int, _: dict[str, Any]) -> Test:
        return lambda v: not isinstance(v, list) or len(v) <= most

    def _uniqueitems(self, wanted: bool, _: dict[str, Any]) -> Test:
        def holds(v: Any) -> bool:
            if not wanted or not isinstance(v, list):
                return True
            seen = {json.dumps(x, sort_keys=True) for x in v}
            return len(seen) == len(v)

        return holds

    def _contains(self, schema: Any, parent: dict[str, Any]) -> Test:
        test = self.test(schema)
        least, most = parent.get("minContains", 1), parent.get("maxContains")

        def holds(v: Any) -> bool:
            if not isinstance(v, list):
                return True
            if most is None and least == 1:
                return any(test(x) for x in v)
            found = sum(1 for x in v if test(x))
            return least <= found and (most is None or found <= most)

        return holds

    def _not(self, schema: Any, _: dict[str, Any]) -> Test:
        test = self.test(schema)
        return lambda v: not test(v)

    def _anyof(self, schemas: list[Any], _: dict[str, Any]) -> Test:
        tests = [self.test(schema) for schema in schemas]
        return lambda v: any(test(v) for test in tests)

    def _if(self, schema: Any, parent: dict[str, Any]) -> Test:
        condition, then = self.test(schema), self.test(parent["then"])
        return lambda v: not condition(v) or then(v)

    def _allof(self, schemas: list[Any], _: dict[str, Any]) -> Test:
        switches: dict[str, dict[str, Test]] = {}
        rest: list[Test] = []
        for schema in schemas:
            case = _case(schema)
            if case is None:
                rest.append(self.test(schema))
            else:
                switches.setdefault(case[0], {})[case[1]] = self.test(schema["then"])

        def holds(v: Any) -> bool:
            if isinstance(v, dict):
                for name, cases in switches.items():
                    chosen = v.get(name)
                    then = cases.get(chosen) if isinstance(chosen, str) else None
                    if then is not None and not then(v):
                        return False
            return all(test(v) for test in rest)

        return holds


def _case(schema: Any) -> tuple[str, str] | None:
    """(property, word) of an `if` that only asks for one required word: the switch by tag."""
    condition = schema.get("if") if isinstance(schema, dict) else None
    if not isinstance(condition, dict) or condition.keys() != {"properties", "required"}:
        return None
    properties = condition["properties"]
    if len(properties) != 1 or condition["required"] != list(properties):
        return None
    ((name, test),) = properties.items()
    return (name, test["const"]) if isinstance(test, dict) and isinstance(test.get("const"), str) else None
