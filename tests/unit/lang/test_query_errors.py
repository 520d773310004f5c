"""Syntax errors of `.gq` text: every diagnostic, with its location and hint."""

import pytest

from tests.support.diagnostic_lines import read_table, reported_queries

TABLE = r"""
x
  1:1 expected `query` here, found `x`
query
  1:6 expected a name after `query`, found end of text
query Q() {}
  1:7 expected a name after `query`, found `Q`
  = names start with a lower-case letter: `q`
query q {}
  1:9 expected `(` to open the parameter list, found `{`
query q( {}
  1:10 expected a variable as a parameter, found `{`
query q(x: I32) {}
  1:9 expected a variable as a parameter, found `x`
query q($x) {}
  1:11 expected `:` after `$x`, found `)`
query q($X: I32) {}
  1:9 `$X` is not a variable name
  = a variable is `$` and a name that starts with a lower-case letter
  1:19 the body of `q` is empty
  = a query reads (`match … return …`) or changes (`insert`, `update`, `delete`)
query q($x: enum(a)) {}
  1:13 a parameter cannot be an enum
  = declare it as `String`
query q($x: Foo) {}
  1:13 expected a type here, found `Foo`
  = types: String, Blob, Bool, I32, I64, U32, U64, F32, F64, DateTime, Date, Vector
query q($x: ) {}
  1:13 expected a type here, found `)`
  = types: String, Blob, Bool, I32, I64, U32, U64, F32, F64, DateTime, Date, Vector
query q($x: I32 $y: I32) {}
  1:17 expected `)` to close the parameter list, found `$y`
query q() @foo("x") {}
  1:12 unknown query annotation `@foo`
  = a query allows `@description`, `@instruction` and `@check`
query q() @description("a") @description("b") {}
  1:30 `@description` is given twice
query q() @description {}
  1:24 expected `(` after `@description`, found `{`
query q() @description(1) {}
  1:24 expected a string in `@description`, found `1`
query q() @description("a" {}
  1:28 expected `)` to close `@description`, found `{`
query q() {}
  1:12 the body of `q` is empty
  = a query reads (`match … return …`) or changes (`insert`, `update`, `delete`)
query q() { x }
  1:13 expected a statement here, found `x`
  = a query reads (`match … return …`) or changes (`insert`, `update`, `delete`)
query q() { match }
  1:19 expected `{` after `match`, found `}`
query q() { match {} return { $x } }
  1:19 the `match` block is empty
query q() { match { $x: T } }
  1:29 expected `return` after the match block, found `}`
query q() { match { $x: T } return {} }
  1:36 the `return` block is empty
query q() { match { $x: T } return { } limit 1 }
  1:36 the `return` block is empty
query q() { match { $x: T } return { $x } order {} }
  1:50 expected a value here, found `}`
query q() { match { $x: T } return { $x } order { $x, } }
  1:55 expected a value here, found `}`
query q() { match { $x: T } return { $x } order { $x asc $y } }
  1:58 expected `}` to close the `order` block, found `$y`
query q() { match { $x: T } return { $x } limit }
  1:49 expected an integer after `limit`, found `}`
query q() { match { $x: T } return { $x } limit -1 }
  1:49 expected an integer after `limit`, found `-`
query q() { match { $x: T } return { $x } limit 18446744073709551616 }
  1:49 number 18446744073709551616 is out of range (0..18446744073709551615)
query q() { match { $x: T } return { $x } offset 1 limit 2 }
  1:52 expected `}` to close the body of `q`, found `limit`
  = a read is written in this order: match, return, order, limit, offset
query q() { match { $x: T } return { $x } extra }
  1:43 expected `}` to close the body of `q`, found `extra`
  = a query reads (`match … return …`) or changes (`insert`, `update`, `delete`)
query q() { match { $x: T } return { $x as } }
  1:44 expected a name after `as`, found `}`
query q() { match { $x: T } return { $x as $y } }
  1:44 expected a name after `as`, found `$y`
query q() { match { $x: T } return { $x as Y } }
  1:44 expected a name after `as`, found `Y`
  = names start with a lower-case letter: `y`
query q() { match { $x: t } return { $x } }
  1:25 expected a type name after `:`, found `t`
  = type names start with an upper-case letter: `T`
query q() { match { $x: T { } } return { $x } }
  1:29 expected a name of a property to match, found `}`
query q() { match { $x: T { a } } return { $x } }
  1:31 expected `:` after `a`, found `}`
query q() { match { $x: T { a: } } return { $x } }
  1:32 expected a value here, found `}`
query q() { match { $x: T { a: null } } return { $x } }
  1:32 there is no null literal
  = leave the property out, or pass a nullable parameter
query q() { match { $x: T { a: foo } } return { $x } }
  1:32 expected a value here, found `foo`
  = text is written in quotes: `"foo"`
query q() { match { $x: T { a: 1 b: 2 } } return { $x } }
  1:34 expected `}` to close the inline match, found `b`
query q() { match { $x: T, $y: T } return { $x } }
  1:26 unexpected `,`
  = clauses of a match are not separated by commas
query q() { match { $x: T and $x.a = 1 } return { $x } }
  1:27 unexpected `and`
  = clauses are joined by writing one after the other
query q() { match { $x.a = 1 and $x.b = 2 } return { $x } }
  1:30 unexpected `and`
  = clauses are joined by writing one after the other
query q() { match { $x.a = 1 or $x.b = 2 } return { $x } }
  1:30 unexpected `or`
  = write `or` inside parentheses: `( … or … )`
query q() { match { $x } return { $x } }
  1:24 expected a comparison here, found `}`
  = operators: = != < <= > >= contains starts_with in, is null, is not null
query q() { match { $x knows } return { $x } }
  1:30 expected a variable where the traversal ends, found `}`
query q() { match { $x Knows $y } return { $x } }
  1:24 expected an edge name here, found `Knows`
  = in a traversal an edge is written `knows`
query q() { match { $x Port } return { $x } }
  1:24 expected an edge name here, found `Port`
  = a binding is written `$x: Port`
query q() { match { $x <Knows> $y } return { $x } }
  1:25 expected an edge name here, found `Knows`
  = in a traversal an edge is written `knows`
query q() { match { $x not $y } return { $x } }
  1:24 `not` cannot be an edge name
  = negate a pattern with `not { … }`
query q() { match { $x $w knows $y } return { $x } }
  1:27 expected `:` after the edge variable `$w`, found `knows`
query q() { match { $x <knows $y } return { $x } }
  1:34 expected a comparison here, found `}`
  = operators: = != < <= > >= contains starts_with in, is null, is not null
query q() { match { $x <knows> } return { $x } }
  1:32 expected a variable where the traversal ends, found `}`
query q() { match { $x knows{1} $y } return { $x } }
  1:31 expected `,` between the two bounds, found `}`
query q() { match { $x knows{a,1} $y } return { $x } }
  1:30 expected an integer as the least number of hops, found `a`
query q() { match { $x knows{1,4294967296} $y } return { $x } }
  1:32 number 4294967296 is out of range (0..4294967295)
query q() { match { $x knows{1,2 $y } return { $x } }
  1:34 expected `}` to close the bounds, found `$y`
  1:54 expected `return` after the match block, found end of text
query q() { match { $x.a } return { $x } }
  1:26 expected a comparison here, found `}`
  = operators: = != < <= > >= contains starts_with in, is null, is not null
query q() { match { $x. = 1 } return { $x } }
  1:25 expected a name of a property of `$x`, found `=`
query q() { match { $x.A = 1 } return { $x } }
  1:24 expected a name of a property of `$x`, found `A`
  = names start with a lower-case letter: `a`
query q() { match { $x.a == 1 } return { $x } }
  1:27 unexpected `=`
  = equality is written `=`
query q() { match { $x.a = } return { $x } }
  1:28 expected a value here, found `}`
query q() { match { $x.a = - } return { $x } }
  1:30 expected a number here, found `}`
query q() { match { $x.a is } return { $x } }
  1:29 expected `null` after `is`, found `}`
query q() { match { $x.a is not 1 } return { $x } }
  1:33 expected `null` after `is`, found `1`
query q() { match { $x.a in } return { $x } }
  1:29 expected a value here, found `}`
query q() { match { $x.a = 9223372036854775808 } return { $x } }
  1:28 number 9223372036854775808 is out of range (-9223372036854775808..9223372036854775807)
query q() { match { $x.a = -9223372036854775809 } return { $x } }
  1:29 number 9223372036854775809 is out of range (-9223372036854775808..9223372036854775807)
query q() { match { ($x.a = 1 or ) } return { $x } }
  1:34 expected a value here, found `)`
query q() { match { ($x.a = 1 or $x.b = 2 } return { $x } }
  1:43 expected `)` to close the group, found `}`
query q() { match { () } return { $x } }
  1:22 expected a value here, found `)`
query q() { match { ($x: T) } return { $x } }
  1:24 expected a comparison here, found `:`
  = operators: = != < <= > >= contains starts_with in, is null, is not null
query q() { match { f($x.a } return { $x } }
  1:28 expected `)` to close `f(`, found `}`
query q() { match { f($x.a,) } return { $x } }
  1:28 expected a value here, found `)`
query q() { match { $x.a = date(1) } return { $x } }
  1:33 expected a string in `date(…)`, found `1`
query q() { match { $x.a = date("a" } return { $x } }
  1:37 expected `)` to close `date(`, found `}`
query q() { match { $x.a = [1,] } return { $x } }
  1:31 expected a value here, found `]`
query q() { match { $x.a = [1 2] } return { $x } }
  1:31 expected `]` to close the list, found `2`
query q() { match { $x.a = [$y] } return { $x } }
  1:29 expected a value here, found `$y`
query q() { match { $x.a = Foo } return { $x } }
  1:28 expected a value here, found `Foo`
  = text is written in quotes: `"Foo"`
query q() { match { not { } $x: T } return { $x } }
  1:25 the `not` block is empty
query q() { match { not $x: T } return { $x } }
  1:25 expected `{` after `not`, found `$x`
  = negate a pattern with `not { … }`
query q() { insert }
  1:20 expected a type name after `insert`, found `}`
query q() { insert t { a: 1 } }
  1:20 expected a type name after `insert`, found `t`
  = type names start with an upper-case letter: `T`
query q() { insert T }
  1:22 expected `{` after `insert T`, found `}`
query q() { insert T { } }
  1:22 the `insert T` block is empty
query q() { insert T { a } }
  1:26 expected `:` after `a`, found `}`
query q() { insert T { A: 1 } }
  1:24 expected a name of a property to assign, found `A`
  = names start with a lower-case letter: `a`
query q() { insert T { a: $x.b } }
  1:29 a property of a variable cannot be a value here
  = compare it in a clause of its own, or pass a parameter
query q() { insert T { a: null } }
  1:27 there is no null literal
  = leave the property out, or pass a nullable parameter
query q() { update T { a: 1 } }
  1:22 expected `set` after `update T`, found `{`
query q() { update T set { a: 1 } }
  1:35 expected `where` here, found `}`
  = say which entities: `where id = …`
query q() { update T set { a: 1 } where }
  1:41 expected a name of a property to test, found `}`
query q() { update T set { a: 1 } where A = 1 }
  1:41 expected a name of a property to test, found `A`
  = names start with a lower-case letter: `a`
query q() { delete T }
  1:22 expected `where` here, found `}`
  = say which entities: `where id = …`
query q() { delete T where a }
  1:30 expected a comparison here, found `}`
  = operators: = != < <= > >=
query q() { delete T where a contains "x" }
  1:30 expected a comparison here, found `contains`
  = operators: = != < <= > >=
query q() { delete T where a = 1 or b = 2 }
  1:34 expected a statement here, found `or`
  = the tests of a statement are joined by `and`
query q() { delete T where a = 1, b = 2 }
  1:33 expected a statement here, found `,`
  = the tests of a statement are joined by `and`
query q() { delete T where a = }
  1:32 expected a value here, found `}`
query q() { delete T where a = 1
  1:7 the body of `q` is not closed
  = close it with `}`
query q() { insert T { a: 1 } match { $x: T } return { $x } }
  1:31 expected a statement here, found `match`
  = a query either reads or changes, never both
query q() { match { $x: T } return { $x } insert T { a: 1 } }
  1:43 expected `}` to close the body of `q`, found `insert`
  = a query either reads or changes, never both
query q() { match { $x: T
  1:19 the `match` block is not closed
  = close it with `}`
query q() { match { $x: T } return { $x }
  1:42 expected `}` to close the body of `q`, found end of text
  = close it with `}`
query q() { match { $x: T $P.a = 1 } return { $x } }
  1:27 `$P` is not a variable name
  = a variable is `$` and a name that starts with a lower-case letter
query q() { match { $x.a = "open } return { $x } }
  1:28 string is not closed
  = close it with `"`
query q() { match { $x: T } return { $x } } }
  1:45 expected `query` here, found `}`
query q() { match { $x: T } return { $x } } node A {}
  1:45 expected `query` here, found `node`
"""


@pytest.mark.parametrize(("text", "lines"), read_table(TABLE))
def test_broken_text_is_reported(text, lines):
    assert reported_queries(text) == lines
