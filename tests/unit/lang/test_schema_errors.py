"""Syntax errors of `.pg` text: every diagnostic, with its location and hint."""

import pytest

from tests.support.diagnostic_lines import read_table, reported_schema

TABLE = r"""
nodeUser {}
  1:1 expected `node`, `edge` or `interface` here, found `nodeUser`
  = write `node User`
$nodeUser
  1:1 expected `node`, `edge` or `interface` here, found `$nodeUser`
x
  1:1 expected `node`, `edge` or `interface` here, found `x`
node
  1:5 expected a type name after `node`, found end of text
node user {}
  1:6 expected a type name after `node`, found `user`
  = type names start with an upper-case letter: `User`
node _ {}
  1:6 expected a type name after `node`, found `_`
  = type names start with an upper-case letter
node _9 {}
  1:6 expected a type name after `node`, found `_9`
  = type names start with an upper-case letter
node __user {}
  1:6 expected a type name after `node`, found `__user`
  = type names start with an upper-case letter: `User`
node A
  1:7 expected `{` to open the body of `A`, found end of text
  = a node has a body, even if empty: `{ }`
node A implements
  1:18 expected a type name after `implements`, found end of text
node A implements i {}
  1:19 expected a type name after `implements`, found `i`
  = type names start with an upper-case letter: `I`
node A implements I, {}
  1:22 expected a type name after `,`, found `{`
node A @key(x) {}
  1:8 `@key(…)` is not allowed in a header
  = write it inside the body
node A @card(0..1) {}
  1:8 write `@card` right after the target type of the edge
node A @ {}
  1:10 expected a name after `@`, found `{`
node A @$key(x) {}
  1:9 expected a name after `@`, found `$key`
node A @X {}
  1:9 expected a name after `@`, found `X`
  = names start with a lower-case letter: `x`
interface
  1:10 expected a type name after `interface`, found end of text
interface I @x {}
  1:13 an interface takes no annotations
interface I { @key(a) }
  1:15 an interface can have only properties
  = put the constraint into the nodes that implement it
interface I { a: I32 @unique(a) }
  1:22 an interface can have only properties
  = put the constraint into the nodes that implement it
edge
  1:5 expected a type name after `edge`, found end of text
edge E
  1:7 expected `:` after `edge E`, found end of text
edge E: a -> B
  1:9 expected a type name as the type the edge starts at, found `a`
  = type names start with an upper-case letter: `A`
edge E: A B
  1:11 expected `->` between the two endpoint types, found `B`
edge E: A ->
  1:13 expected a type name as the type the edge ends at, found end of text
edge E: A -> B @x @card(0..1)
  1:19 write `@card` right after the target type of the edge
edge E: A -> B @card
  1:21 expected `(` after `@card`, found end of text
edge E: A -> B @card(x..1)
  1:22 expected an integer as the minimum, found `x`
edge E: A -> B @card(0 1)
  1:24 expected `..` between minimum and maximum, found `1`
edge E: A -> B @card(0..4294967296)
  1:25 number 4294967296 is out of range (0..4294967295)
edge E: A -> B @card(0..-1)
  1:25 expected `)` to close `@card`, found `-`
edge E: A -> B @$card(0..1)
  1:17 expected a name after `@`, found `$card`
node A { x: I32, y: I32 }
  1:16 unexpected `,`
  = properties are not separated by commas
node A { @x x: I32 }
  1:10 write an annotation after its property
node A { X: I32 }
  1:10 expected a name of a property, found `X`
  = names start with a lower-case letter: `x`
node A { $x: I32 }
  1:10 expected a name of a property, found `$x`
node A { 1: I32 }
  1:10 expected a name of a property, found `1`
node A { x I32 }
  1:12 expected `:` after the property name `x`, found `I32`
node A { x: }
  1:13 expected a type here, found `}`
  = types: String, Blob, Bool, I32, I64, U32, U64, F32, F64, DateTime, Date, Vector
node A { x: int }
  1:13 expected a type here, found `int`
  = did you mean `I64`?
node A { x: string }
  1:13 expected a type here, found `string`
  = did you mean `String`?
node A { x: Foo }
  1:13 expected a type here, found `Foo`
  = types: String, Blob, Bool, I32, I64, U32, U64, F32, F64, DateTime, Date, Vector
node A { x: [I32 }
  1:18 expected `]` to close the list type, found `}`
node A { x: [enum(a)] }
  1:14 a list of enum is not supported
  = list elements are base types
node A { x: [Vector(3)] }
  1:14 a list of Vector is not supported
  = list elements are base types
node A { x: [[I32]] }
  1:14 expected a type here, found `[`
  = types: String, Blob, Bool, I32, I64, U32, U64, F32, F64, DateTime, Date
node A { x: Vector }
  1:20 expected `(` after `Vector`, found `}`
node A { x: Vector(0) }
  1:20 number 0 is out of range (1..2147483647)
node A { x: Vector(2147483648) }
  1:20 number 2147483648 is out of range (1..2147483647)
node A { x: Vector(n) }
  1:20 expected an integer as the vector dimension, found `n`
node A { x: Vector(3 }
  1:22 expected `)` after the vector dimension, found `}`
node A { x: enum() }
  1:18 expected an enum value here, found `)`
node A { x: enum("a") }
  1:18 expected an enum value here, found `"a"`
  = enum values are written without quotes
node A { x: enum(a b) }
  1:20 expected `)` to close the enum, found `b`
node A { x: enum(a, ) }
  1:21 expected an enum value here, found `)`
node A { x: enum(a.b) }
  1:19 expected `)` to close the enum, found `.`
node A { x: enum a }
  1:18 expected `(` after `enum`, found `a`
node A { x: I32 @d( }
  1:21 expected a value here, found `}`
node A { x: I32 @d() }
  1:20 expected a value here, found `)`
node A { x: I32 @d(Foo) }
  1:20 expected a value here, found `Foo`
  = write `"Foo"`
node A { x: I32 @d(a=1) }
  1:20 the first argument has no name
node A { x: I32 @d(1, 2) }
  1:23 expected a name of a named argument, found `2`
node A { x: I32 @d(1, k 2) }
  1:25 expected `=` after `k`, found `2`
node A { x: I32 @d(1, k=v) }
  1:25 expected a value here, found `v`
node A { x: I32 @d(-) }
  1:21 expected a number here, found `)`
node A { x: I32 @d(-true) }
  1:21 expected a number here, found `true`
node A { x: I32 @d(-foo) }
  1:21 expected a number here, found `foo`
node A { x: I32 @d("a" }
  1:24 expected `)` to close `@d`, found `}`
node A { @key() }
  1:15 expected a property or a value here, found `)`
node A { @key(A) }
  1:15 expected a property or a value here, found `A`
node A { @key(a b) }
  1:17 expected `)` to close `@key`, found `b`
node A { @range(a, ..) }
  1:22 expected a number here, found `)`
node A { @range(a, ..x) }
  1:22 expected a number here, found `x`
node A { @range(a, -..1) }
  1:21 expected a number here, found `..`
node A { @range(a, 1..-) }
  1:24 expected a number here, found `)`
node A { @check(a, "x\q") }
  1:22 unsupported escape sequence `\q`
  = the escapes are \" \\ \n \r \t
node A {
  1:6 the body of `A` is not closed
  = close it with `}`
node A { x: I32
  1:6 the body of `A` is not closed
  = close it with `}`
node A { } }
  1:12 expected `node`, `edge` or `interface` here, found `}`
node A { x: "
  1:13 string is not closed
  = close it with `"`
/* open
  1:1 comment is not closed
  = close it with `*/`
node A { x: I32 } node B
  1:25 expected `{` to open the body of `B`, found end of text
  = a node has a body, even if empty: `{ }`
node A { x: I32 # }
  1:17 unexpected character `#`
  = comments are written `// …` or `/* … */`
node A { x: I32 é }
  1:17 unexpected character U+00E9 LATIN SMALL LETTER E WITH ACUTE
node A { x: 'I32' }
  1:13 unexpected character `'`
  = strings are written with double quotes: `"…"`
  1:13 expected a type here, found `'I32'`
  = types: String, Blob, Bool, I32, I64, U32, U64, F32, F64, DateTime, Date, Vector
"""


@pytest.mark.parametrize(("text", "lines"), read_table(TABLE))
def test_broken_text_is_reported(text, lines):
    assert reported_schema(text) == lines
