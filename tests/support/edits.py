"""Hypothesis strategies for edits of sketches: gentle ones a plan supports, and any others."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.support.schemas import (
    BASES,
    NOTES,
    VALUES,
    Decl,
    Edit,
    Prop,
    Rule,
    Sketch,
    each_prop,
    effective,
    fresh,
    is_keyed,
    of_kind,
    pick,
    props,
    rules_named,
    update,
)

ALL = ("interface", "node", "edge")


# --- gentle edits ------------------------------------------------------------------------------


def add_type(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    nodes = [decl.name for decl in of_kind(sketch, "node")]
    kind = draw(st.sampled_from(ALL if nodes else ALL[:2]))
    name = fresh(sketch, kind[0].upper())
    own = (draw(props("i90" if kind == "interface" else "p90")),)
    if kind == "interface":
        own = (replace(own[0], name=fresh(sketch, "i")),)
    ends = (nodes[0], nodes[-1]) if kind == "edge" else ("", "")
    implements = tuple(d.name for d in of_kind(sketch, "interface")[:1]) if kind == "node" else ()
    return (*sketch, Decl(kind, name, own, implements=implements, ends=ends))


def rename_type(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = of_kind(sketch, "node", "edge")
    if not found:
        return sketch
    old = draw(st.sampled_from(found))
    new = fresh(sketch, old.kind[0].upper())

    def renamed(decl: Decl) -> Decl:
        if decl is old:
            decl = replace(decl, name=new)
        if old.kind == "node" and old.name in decl.ends:
            src, dst = (new if end == old.name else end for end in decl.ends)
            decl = replace(decl, ends=(src, dst))
        return decl

    return tuple(renamed(decl) for decl in sketch)


def drop_type(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = of_kind(sketch, "node", "edge")
    if not found:
        return sketch
    gone = draw(st.sampled_from(found))
    return tuple(
        decl
        for decl in sketch
        if decl is not gone and not (gone.kind == "node" and gone.name in decl.ends)
    )


def add_property(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    if not sketch:
        return sketch
    decl = draw(st.sampled_from(sketch))
    prop = draw(props(fresh(sketch, "i" if decl.kind == "interface" else "p"), nullable=True))
    sources = [p.name for p in decl.props if p.textual]
    if decl.kind == "node" and prop.base == "Vector(2)" and sources:
        prop = replace(prop, embed=sources[0])
    if prop.indexable and draw(st.booleans()):
        prop = replace(prop, words=("index",))
    return update(sketch, decl, replace(decl, props=(*decl.props, prop)))


def rename_property(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = pick(draw, sketch, *ALL)
    if found is None:
        return sketch
    owner, prop = found
    old, new = prop.name, fresh(sketch, prop.name[0])
    shared = old.startswith("i")

    def renamed(decl: Decl) -> Decl:
        if decl is not owner and not shared:
            return decl
        own = tuple(
            replace(
                p,
                name=new if p.name == old else p.name,
                embed=new if p.embed == old else p.embed,
            )
            for p in decl.props
        )
        rules = tuple(
            replace(r, names=tuple(new if name == old else name for name in r.names))
            for r in decl.rules
        )
        return replace(decl, props=own, rules=rules)

    return tuple(renamed(decl) for decl in sketch)


def drop_own_property(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """Drop a property nothing else needs, with the constraints that speak of it alone."""
    found = pick(draw, sketch, "node", "edge")
    if found is None:
        return sketch
    decl, prop = found
    rules = [rule for rule in decl.rules if prop.name in rule.names]
    needed = any(len(rule.names) > 1 or rule.word == "key" for rule in rules)
    embedded = any(p.embed == prop.name for p in decl.props)
    if needed or embedded or prop.name.startswith("i"):
        return sketch
    return update(sketch, decl, _without(decl, prop))


def drop_injected_property(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    """Drop an interface property that no node declares itself."""
    found = pick(draw, sketch, "interface")
    if found is None:
        return sketch
    _, prop = found
    declared = any(decl.prop(prop.name) for decl in of_kind(sketch, "node"))
    if declared or rules_named(sketch, prop.name) or "key" in prop.words:
        return sketch
    return tuple(_without(d, prop) if d.kind == "interface" else d for d in sketch)


def _without(decl: Decl, prop: Prop) -> Decl:
    return replace(
        decl,
        props=tuple(p for p in decl.props if p.name != prop.name),
        rules=tuple(r for r in decl.rules if prop.name not in r.names),
    )


def widen_enum(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = pick(draw, sketch, *ALL, where=lambda p: p.base == "enum")
    if found is None:
        return sketch
    more = draw(st.sets(st.sampled_from(VALUES), min_size=2))
    values = tuple(sorted({*found[1].values, *more}))
    return each_prop(sketch, *_place(found), lambda p: replace(p, values=values))


def add_index(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = of_kind(sketch, "node", "edge")
    if not found:
        return sketch
    decl = draw(st.sampled_from(found))
    system = ["id"] if decl.kind == "node" else ["id", "src", "dst"]
    names = sorted([*system, *(p.name for p in effective(sketch, decl) if p.indexable)])
    columns = draw(st.sets(st.sampled_from(names), min_size=1, max_size=2))
    rule = Rule("index", tuple(sorted(columns)))
    return update(sketch, decl, replace(decl, rules=(*decl.rules, rule)))


def index_interface_property(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = pick(draw, sketch, "interface", where=lambda p: p.indexable)
    if found is None:
        return sketch
    name = found[1].name

    def indexed(decl: Decl) -> Decl:
        if decl.kind != "interface":
            return decl
        own = tuple(
            replace(p, words=tuple({*p.words, "index"})) if p.name == name else p
            for p in decl.props
        )
        return replace(decl, props=own)

    return tuple(indexed(decl) for decl in sketch)


def describe_type(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = of_kind(sketch, "node", "edge")
    if not found:
        return sketch
    decl = draw(st.sampled_from(found))
    kept = tuple(n for n in decl.notes if not n.startswith(("@description", "@instruction")))
    added = draw(st.sets(st.sampled_from(('@description("new")', '@instruction("new")'))))
    return update(sketch, decl, replace(decl, notes=(*kept, *added)))


def describe_property(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = pick(draw, sketch, *ALL)
    if found is None:
        return sketch
    added = draw(st.sampled_from(((), ('@description("new")',))))

    def described(prop: Prop) -> Prop:
        kept = tuple(n for n in prop.notes if not n.startswith("@description"))
        return replace(prop, notes=(*kept, *added))

    return each_prop(sketch, *_place(found), described)


def _place(found: tuple[Decl, Prop]) -> tuple[Decl, str]:
    return found[0], found[1].name


# --- edits a plan may refuse -------------------------------------------------------------------


def change_type(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = pick(draw, sketch, *ALL, where=lambda p: p.base in ("I32", "I64"))
    if found is None:
        return sketch
    other = "I64" if found[1].base == "I32" else "I32"
    return each_prop(sketch, *_place(found), lambda p: replace(p, base=other))


def change_nullability(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = pick(draw, sketch, *ALL)
    if found is None or is_keyed(sketch, *found):
        return sketch
    nullable = not found[1].nullable
    return each_prop(sketch, *_place(found), lambda p: replace(p, nullable=nullable))


def narrow_enum(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = pick(draw, sketch, *ALL, where=lambda p: len(p.values) > 1)
    if found is None:
        return sketch
    values = found[1].values[1:]
    return each_prop(sketch, *_place(found), lambda p: replace(p, values=values))


def add_required_property(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = of_kind(sketch, "node", "edge")
    if not found:
        return sketch
    decl = draw(st.sampled_from(found))
    prop = Prop(fresh(sketch, "p"), draw(st.sampled_from(BASES[:4])), nullable=False)
    return update(sketch, decl, replace(decl, props=(*decl.props, prop)))


def drop_any_property(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = pick(draw, sketch, *ALL)
    if found is None:
        return sketch
    decl, prop = found
    if decl.kind == "interface":
        sketch = tuple(
            replace(d, rules=tuple(r for r in d.rules if prop.name not in r.names))
            if d.prop(prop.name) is None
            else d
            for d in sketch
        )
        decl = next(d for d in sketch if d.name == decl.name and d.kind == "interface")
    unembedded = replace(
        decl,
        props=tuple(replace(p, embed=None) if p.embed == prop.name else p for p in decl.props),
    )
    # What an interface asks for comes back as an injected property of its type, with its key.
    if not prop.name.startswith("i"):
        rules = _without(decl, prop).rules
    elif is_keyed(sketch, decl, prop):
        rules = tuple(rule for rule in decl.rules if rule.word != "key")
    else:
        rules = decl.rules
    return update(sketch, decl, replace(_without(unembedded, prop), rules=rules))


def drop_constraint(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = [decl for decl in sketch if decl.rules]
    if not found:
        return sketch
    decl = draw(st.sampled_from(found))
    return update(sketch, decl, replace(decl, rules=decl.rules[1:]))


def add_unique(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = of_kind(sketch, "node", "edge")
    if not found:
        return sketch
    decl = draw(st.sampled_from(found))
    return update(sketch, decl, replace(decl, rules=(*decl.rules, Rule("unique", ("id",)))))


def change_notes(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = pick(draw, sketch, *ALL)
    if found is None:
        return sketch
    notes = tuple(draw(st.sets(st.sampled_from(NOTES))))
    return each_prop(sketch, *_place(found), lambda p: replace(p, notes=notes))


def change_edge(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = of_kind(sketch, "edge")
    if not found:
        return sketch
    decl = draw(st.sampled_from(found))
    nodes = [node.name for node in of_kind(sketch, "node")]
    ends = draw(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)))
    card = draw(st.sampled_from(("", "@card(0..1)", "@card(1..)")))
    return update(sketch, decl, replace(decl, ends=ends, card=card))


def declare_injected(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    found = [
        (decl, prop)
        for decl in of_kind(sketch, "node")
        for prop in effective(sketch, decl)
        if decl.prop(prop.name) is None
    ]
    if not found:
        return sketch
    decl, prop = draw(st.sampled_from(found))
    return update(sketch, decl, replace(decl, props=(*decl.props, replace(prop, embed=None))))


def drop_interface(draw: st.DrawFn, sketch: Sketch) -> Sketch:
    used = {name for decl in sketch for name in decl.implements}
    found = [decl for decl in of_kind(sketch, "interface") if decl.name not in used]
    if not found:
        return sketch
    gone = draw(st.sampled_from(found))
    return tuple(decl for decl in sketch if decl is not gone)


GENTLE: tuple[Edit, ...] = (
    add_type,
    rename_type,
    drop_type,
    add_property,
    rename_property,
    drop_own_property,
    drop_injected_property,
    widen_enum,
    add_index,
    index_interface_property,
    describe_type,
    describe_property,
)
ROUGH: tuple[Edit, ...] = (
    change_type,
    change_nullability,
    narrow_enum,
    add_required_property,
    drop_any_property,
    drop_constraint,
    add_unique,
    change_notes,
    change_edge,
    declare_injected,
    drop_interface,
)


@st.composite
def edited(draw: st.DrawFn, sketch: Sketch, edits: tuple[Edit, ...]) -> Sketch:
    """Draw the outcome of a few edits."""
    for edit in draw(st.lists(st.sampled_from(edits), min_size=1, max_size=5)):
        sketch = edit(draw, sketch)
    return sketch
