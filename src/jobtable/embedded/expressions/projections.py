"""ProjectionExpression."""

from __future__ import annotations

from jobtable.embedded.expressions.checks import checked_projection
from jobtable.embedded.expressions.paths import InvalidExpression, PathTree, part_of, resolved, tree_of
from jobtable.embedded.expressions.placeholders import Names, Placeholders, remembered
from jobtable.store.backend import Item


class Projection:
    """A compiled projection."""

    __slots__ = ("_tree", "names_used", "nested_names", "top_level_names")

    parameter = "ProjectionExpression"

    top_level_names: frozenset[str]  # the top-level attributes that the projection reads

    def __init__(self, tree: PathTree, names_used: frozenset[str]) -> None:
        self._tree = tree
        self.names_used = names_used
        self.top_level_names = frozenset(map(str, tree))
        self.nested_names = frozenset(str(name) for name, deeper in tree.items() if deeper is not None)

    def apply(self, item: Item) -> Item:
        """Return the projected part of the item as a new dict, without paths that the item lacks."""
        return part_of(item, self._tree)


def compile_projection(text: str, placeholders: Placeholders) -> Projection:
    try:
        projection = _compiled(text, placeholders.names_key)
    except InvalidExpression as error:
        raise error.refused("ProjectionExpression") from error
    placeholders.use(projection.names_used, frozenset(), projection.nested_names)
    return projection


@remembered
def _compiled(text: str, names_key: Names) -> Projection:
    names = dict(names_key)
    paths = checked_projection(text)
    tree = tree_of(resolved(path, names) for path in reversed(paths))
    return Projection(tree, frozenset(part for path in paths for part in path if part in names))
