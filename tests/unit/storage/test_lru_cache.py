from omnigraph.storage.lru_cache import LruCache


def test_what_was_not_asked_for_longest_is_forgotten():
    cache = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert cache.put("c", 3) == 3
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_large_values_make_room_by_size_but_the_newest_stays():
    cache = LruCache(10, len)
    cache.put("a", "x" * 6)
    cache.put("b", "x" * 4)
    assert cache.get("a") is not None
    cache.put("c", "x" * 30)
    assert [cache.get(key) is None for key in "abc"] == [True, True, False]


def test_a_value_that_is_put_again_replaces_the_old_one():
    cache = LruCache(2)
    for number in range(5):
        cache.put("a", number)
    cache.put("b", 9)
    assert (cache.get("a"), cache.get("b")) == (4, 9)


def test_group_of_keys_keeps_its_newest_values():
    cache = LruCache(10, group=lambda key: key[0], per_group=2)
    for key in ("a1", "b1", "a2", "a3", "a1"):
        cache.put(key, key)
    assert [cache.get(key) for key in ("a1", "a2", "a3", "b1")] == ["a1", None, "a3", "b1"]
