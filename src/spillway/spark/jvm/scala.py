"""Values of Scala as Python sees them through the gateway."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject


def elements(sequence: "JavaObject") -> list[Any]:
    """The elements of a Scala sequence."""
    return [sequence.apply(number) for number in range(sequence.size())]
