from omnigraph.storage.lru_cache import LruCache


def test_what_was_not_asked_for_longest_is_forgotten():
    recent = LruCache(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    assert recent.put("c", 3) == 3
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_large_values_make_room_by_size_but_the_newest_stays():
    recent = LruCache(10, len)
    recent.put("a", "x" * 6)
    recent.put("b", "x" * 4)
    assert recent.get("a") is not None
    recent.put("c", "x" * 30)
    assert [recent.get(key) is None for key in "abc"] == [True, True, False]


def test_a_value_that_is_put_again_replaces_the_old_one():
    recent = LruCache(2)
    for number in range(5):
        recent.put("a", number)
    recent.put("b", 9)
    assert (recent.get("a"), recent.get("b")) == (4, 9)


def test_of_keys_that_are_alike_a_few_stay():
    recent = LruCache(10, alike=lambda key: key[0], each=2)
    for key in ("a1", "b1", "a2", "a3", "a1"):
        recent.put(key, key)
    assert [recent.get(key) for key in ("a1", "a2", "a3", "b1")] == ["a1", None, "a3", "b1"]
