from omnigraph.storage.lru_cache import LruCache


def test_the_least_cachely_used_value_is_evicted():
    cache = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert cache.put("c", 3) == 3
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_capacity_by_size_keeps_the_newest_value():
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


def test_capacity_of_a_group():
    cache = LruCache(10, group=lambda key: key[0], group_capacity=2)
    for key in ("a1", "b1", "a2", "a3", "a1"):
        cache.put(key, key)
    assert [cache.get(key) for key in ("a1", "a2", "a3", "b1")] == ["a1", None, "a3", "b1"]


def test_evicted_values_are_reported_and_removed_ones_are_not():
    evicted = []
    cache = LruCache(2, on_evict=lambda key, value: evicted.append((key, value)))
    for key in "abc":
        cache.put(key, key * 2)
    cache.remove("b")
    cache.remove("b")
    assert evicted == [("a", "aa")]
    assert len(cache) == 1
    assert ("c" in cache, "b" in cache, cache.peek("b")) == (True, False, None)


def test_a_peeked_value_is_still_the_least_recently_used():
    cache = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.peek("a") == 1
    cache.put("c", 3)
    assert cache.peek("a") is None


def test_a_removed_key_leaves_its_group_and_its_size():
    cache = LruCache(10, len, group=lambda key: key[0], group_capacity=2)
    cache.put("a1", "x" * 6)
    cache.put("a2", "x" * 4)
    cache.remove("a1")
    cache.put("a3", "x" * 6)
    assert [cache.get(key) is None for key in ("a1", "a2", "a3")] == [True, False, False]


def test_cleared_cache_is_empty_and_takes_as_much_as_before():
    cache = LruCache(2, group=lambda key: key[0], group_capacity=1)
    cache.put("a1", 1)
    cache.put("b1", 2)
    cache.clear()
    assert (len(cache), cache.get("a1")) == (0, None)
    cache.put("a1", 3)
    cache.put("b1", 4)
    assert [cache.get("a1"), cache.get("b1")] == [3, 4]
