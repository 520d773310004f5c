/* Loops over edges that NumPy cannot express: see kernels.py and analytics/kernels.py.

   Each does a bounded part of its work and returns where to go on, so that callers check limits.
   The neighbours of node i stand from starts[i] up to starts[i + 1]. Positions are 64 bits wide,
   neighbours 32 or 64: a function has a variant for each, named _i32 and _i64. */

#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

API int64_t kernels_version(void) { return 2; }

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif
#define BLOCK 64

/* A number for a text that is spread over all 64 bits. */
static inline uint64_t hash_text(const uint8_t *text, int64_t size, uint64_t seed) {
    uint64_t hash = seed ^ (uint64_t)size, word;
    for (; size > 0; text += 8, size -= 8) {
        word = 0;
        memcpy(&word, text, size < 8 ? (size_t)size : 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Enter texts begin to end in `table`, which has a power of two places, more than there are texts,
   and -1 in each at first; `mask` is its size less one. Text i stands at offsets[i] up to
   offsets[i + 1]. */
#define INDEX_TEXTS(OFFSET, NAME)                                                                \
    API int64_t NAME(const OFFSET *offsets, const uint8_t *letters, int32_t *table,              \
                     int64_t mask, int64_t seed, int64_t begin, int64_t end) {                   \
        for (; begin < end; begin++) {                                                           \
            int64_t size = offsets[begin + 1] - offsets[begin];                                  \
            uint64_t place = hash_text(letters + offsets[begin], size, (uint64_t)seed);          \
            while (table[place & (uint64_t)mask] >= 0) place++;                                  \
            table[place & (uint64_t)mask] = (int32_t)begin;                                      \
        }                                                                                        \
        return begin;                                                                            \
    }

/* Find texts begin to end among those that were entered in a table; -1 for one that is not there.
   Memory is read for a block of them at once, because each would wait for it three times. */
#define FIND_TEXTS(OFFSET, NAME)                                                                 \
    API int64_t NAME(const OFFSET *known, const uint8_t *known_letters, const int32_t *table,    \
                     int64_t mask, int64_t seed, const OFFSET *offsets, const uint8_t *letters,  \
                     int32_t *found, int64_t begin, int64_t end) {                               \
        uint64_t places[BLOCK];                                                                  \
        for (; begin < end; begin += BLOCK) {                                                    \
            int64_t count = end - begin < BLOCK ? end - begin : BLOCK;                           \
            const OFFSET *here = offsets + begin;                                                \
            for (int64_t i = 0; i < count; i++) {                                                \
                places[i] = hash_text(letters + here[i], here[i + 1] - here[i], (uint64_t)seed); \
                PREFETCH(table + (places[i] & (uint64_t)mask));                                  \
            }                                                                                    \
            for (int64_t i = 0; i < count; i++) {                                                \
                int32_t one = table[places[i] & (uint64_t)mask];                                 \
                if (one >= 0) PREFETCH(known + one);                                             \
            }                                                                                    \
            for (int64_t i = 0; i < count; i++) {                                                \
                int32_t one = table[places[i] & (uint64_t)mask];                                 \
                if (one >= 0) PREFETCH(known_letters + known[one]);                              \
            }                                                                                    \
            for (int64_t i = 0; i < count; i++) {                                                \
                int64_t size = here[i + 1] - here[i];                                            \
                int32_t one;                                                                     \
                for (; (one = table[places[i] & (uint64_t)mask]) >= 0; places[i]++)              \
                    if (known[one + 1] - known[one] == size &&                                   \
                        memcmp(known_letters + known[one], letters + here[i], (size_t)size) == 0) \
                        break;                                                                   \
                found[begin + i] = one;                                                          \
            }                                                                                    \
        }                                                                                        \
        return end;                                                                              \
    }

/* Put members begin to end of `order` into groups by key; next[k] is where the next member of k goes.
   Keys are 32 or 64 bits wide. */
#define GROUP_BY_KEY(KEY, NODE, NAME)                                                            \
    API int64_t NAME(const KEY *keys, const NODE *order, int64_t *next, NODE *grouped,           \
                     int64_t begin, int64_t end) {                                               \
        for (; begin < end; begin++) {                                                           \
            NODE member = order[begin];                                                          \
            grouped[next[keys[member]]++] = member;                                              \
        }                                                                                        \
        return begin;                                                                            \
    }

/* Count for each pair the neighbours both have; returns the row to go on with. `marks` is for
   neighbours; a row marks those of its second member unless the row before did. */
#define COUNT_COMMON_NEIGHBOURS(NODE, NAME)                                                      \
    API int64_t NAME(const int64_t *starts, const NODE *nodes, const int64_t *here,              \
                     const int64_t *other_starts, const NODE *other_nodes, const int64_t *there, \
                     int32_t *marks, int64_t *counts, int64_t rows, int64_t begin, int64_t most) { \
        int32_t mark = 0;                                                                        \
        int64_t row = begin, followed = 0;                                                       \
        for (; row < rows && followed <= most; row++) {                                          \
            int64_t one = here[row], two = there[row], count = 0;                                \
            if (row == begin || two != there[row - 1]) {                                         \
                mark = (int32_t)(row + 1);                                                       \
                for (int64_t place = other_starts[two]; place < other_starts[two + 1]; place++)  \
                    marks[other_nodes[place]] = mark;                                            \
                followed += other_starts[two + 1] - other_starts[two];                           \
            }                                                                                    \
            for (int64_t place = starts[one]; place < starts[one + 1]; place++)                  \
                count += marks[nodes[place]] == mark;                                            \
            followed += 1 + starts[one + 1] - starts[one];                                       \
            counts[row] = count;                                                                 \
        }                                                                                        \
        return row;                                                                              \
    }

/* Search breadth first from each start; returns how many pairs of a start and a node were written.
   It pauses after `most` edges, or when `capacity` pairs are written, and goes on from `state`, six
   zeros at first, until state[0] is the number of starts. `seen` has a zero for each node at first:
   a node is marked when it is met, and with one more when it is also returned. A self-loop leads to
   its node once, within the bounds, and not on from there. */
#define SEARCH_BREADTH_FIRST(NODE, NAME)                                                         \
    API int64_t NAME(const int64_t *starts, const NODE *nodes, const int64_t *begin,             \
                     int64_t count, int64_t minimum, int64_t maximum, int64_t *seen,             \
                     int64_t *queue, int64_t *state, int64_t *rows, int64_t *reached,            \
                     int64_t capacity, int64_t most) {                                           \
        int64_t done = state[0], hop = state[1], place = state[2], edge = state[3];              \
        int64_t stop = state[4], last = state[5], size = 0, followed = 0;                        \
        while (done < count) {                                                                   \
            int64_t mark = 2 * done + 1;                                                         \
            if (hop == 0) {                                                                      \
                if (followed++ >= most) goto pause;                                              \
                seen[begin[done]] = mark;                                                        \
                queue[0] = begin[done];                                                          \
                edge = starts[begin[done]];                                                      \
                place = 0, stop = last = hop = 1;                                                \
            }                                                                                    \
            for (; hop <= maximum; hop++) {                                                      \
                int64_t returned = hop >= minimum;                                               \
                while (place < stop) {                                                           \
                    int64_t node = queue[place];                                                 \
                    for (; edge < starts[node + 1]; edge++) {                                    \
                        if (size == capacity || followed++ >= most) goto pause;                  \
                        int64_t target = nodes[edge];                                            \
                        if (target == node) {                                                    \
                            if (!returned || seen[node] == mark + 1) continue;                   \
                            seen[node] = mark + 1;                                               \
                        } else if (seen[target] >= mark) {                                       \
                            continue;                                                            \
                        } else {                                                                 \
                            seen[target] = mark + returned;                                      \
                            queue[last++] = target;                                              \
                        }                                                                        \
                        if (returned) {                                                          \
                            rows[size] = done;                                                   \
                            reached[size++] = target;                                            \
                        }                                                                        \
                    }                                                                            \
                    if (++place < last) edge = starts[queue[place]];                             \
                }                                                                                \
                if (stop == last) break;                                                         \
                stop = last;                                                                     \
            }                                                                                    \
            hop = 0;                                                                             \
            done++;                                                                              \
        }                                                                                        \
    pause:                                                                                       \
        state[0] = done, state[1] = hop, state[2] = place, state[3] = edge;                      \
        state[4] = stop, state[5] = last;                                                        \
        return size;                                                                             \
    }

/* Join the trees of both ends of each edge; the root of a tree is its lowest rank. */
#define JOIN_COMPONENTS(NODE, NAME)                                                              \
    API int64_t NAME(const int64_t *starts, const NODE *nodes, int64_t count,                    \
                     const int64_t *ranks, int64_t *parents, int64_t node, int64_t most) {       \
        int64_t followed = 0;                                                                    \
        for (; node < count && followed <= most; node++) {                                       \
            followed += 1 + starts[node + 1] - starts[node];                                     \
            for (int64_t place = starts[node]; place < starts[node + 1]; place++) {              \
                int64_t one = ranks[node], other = ranks[nodes[place]];                          \
                while (parents[one] != one) one = parents[one] = parents[parents[one]];          \
                while (parents[other] != other)                                                  \
                    other = parents[other] = parents[parents[other]];                            \
                if (one < other)                                                                 \
                    parents[other] = one;                                                        \
                else                                                                             \
                    parents[one] = other;                                                        \
            }                                                                                    \
        }                                                                                        \
        return node;                                                                             \
    }

/* Choose the label with most votes of each node and its neighbours, of several the lowest. `votes`
   has a zero for each label, and has again afterwards. */
#define CHOOSE_LABELS(NODE, NAME)                                                                \
    API int64_t NAME(const int64_t *starts, const NODE *nodes, int64_t count,                    \
                     const int64_t *labels, int64_t *chosen, int64_t *votes, int64_t node,       \
                     int64_t most) {                                                             \
        int64_t followed = 0;                                                                    \
        for (; node < count && followed <= most; node++) {                                       \
            int64_t best = labels[node];                                                         \
            followed += 1 + starts[node + 1] - starts[node];                                     \
            votes[best] = 1;                                                                     \
            for (int64_t place = starts[node]; place < starts[node + 1]; place++) {              \
                int64_t label = labels[nodes[place]], more = ++votes[label];                     \
                if (more > votes[best] || (more == votes[best] && label < best)) best = label;   \
            }                                                                                    \
            votes[labels[node]] = 0;                                                             \
            for (int64_t place = starts[node]; place < starts[node + 1]; place++)                \
                votes[labels[nodes[place]]] = 0;                                                 \
            chosen[node] = best;                                                                 \
        }                                                                                        \
        return node;                                                                             \
    }

/* Settle the nearest nodes of a heap and relax their edges; returns the size of the heap. The heap
   has nodes in order of distance, and for each node its place, -1 for those outside. */
#define SETTLE_NEAREST(NODE, NAME)                                                               \
    API int64_t NAME(const int64_t *starts, const NODE *nodes, const double *weights,            \
                     double *distances, int64_t *members, int64_t *places, int64_t size,         \
                     int64_t most) {                                                             \
        int64_t followed = 0;                                                                    \
        while (size > 0 && followed <= most) {                                                   \
            int64_t node = members[0], last = members[--size], hole = 0;                         \
            places[node] = -1;                                                                   \
            while (2 * hole + 1 < size) { /* the last member sinks from the top */               \
                int64_t child = 2 * hole + 1;                                                    \
                if (child + 1 < size &&                                                          \
                    distances[members[child + 1]] < distances[members[child]])                   \
                    child++;                                                                     \
                if (distances[members[child]] >= distances[last]) break;                         \
                members[hole] = members[child];                                                  \
                places[members[hole]] = hole;                                                    \
                hole = child;                                                                    \
            }                                                                                    \
            if (size > 0) {                                                                      \
                members[hole] = last;                                                            \
                places[last] = hole;                                                             \
            }                                                                                    \
            followed += 1 + starts[node + 1] - starts[node];                                     \
            for (int64_t place = starts[node]; place < starts[node + 1]; place++) {              \
                int64_t target = nodes[place];                                                   \
                double distance = distances[node] + weights[place];                              \
                if (distance >= distances[target]) continue;                                     \
                distances[target] = distance;                                                    \
                if (places[target] < 0) places[target] = size++;                                 \
                hole = places[target];                                                           \
                while (hole > 0) { /* the target rises from where it is */                       \
                    int64_t parent = (hole - 1) / 2;                                             \
                    if (distances[members[parent]] <= distance) break;                           \
                    members[hole] = members[parent];                                             \
                    places[members[hole]] = hole;                                                \
                    hole = parent;                                                               \
                }                                                                                \
                members[hole] = target;                                                          \
                places[target] = hole;                                                           \
            }                                                                                    \
        }                                                                                        \
        return size;                                                                             \
    }

/* Take out nodes by the number of neighbours left, which becomes their core number. `members` has
   the nodes by degree, `places` the place of each node there, `firsts` where each degree begins; no
   node has a neighbour twice. */
#define PEEL_CORES(NODE, NAME)                                                                   \
    API int64_t NAME(const int64_t *starts, const NODE *nodes, int64_t count, int64_t *degrees,  \
                     int64_t *members, int64_t *places, int64_t *firsts, int64_t at,             \
                     int64_t most) {                                                             \
        int64_t followed = 0;                                                                    \
        for (; at < count && followed <= most; at++) {                                           \
            int64_t node = members[at];                                                          \
            followed += 1 + starts[node + 1] - starts[node];                                     \
            for (int64_t place = starts[node]; place < starts[node + 1]; place++) {              \
                int64_t other = nodes[place], degree = degrees[other];                           \
                if (degree <= degrees[node]) continue;                                           \
                /* The other changes places with the first of its degree, and leaves it. */      \
                int64_t first = firsts[degree], here = places[other], swapped = members[first];  \
                members[first] = other, members[here] = swapped;                                 \
                places[other] = first, places[swapped] = here;                                   \
                firsts[degree] = first + 1;                                                      \
                degrees[other] = degree - 1;                                                     \
            }                                                                                    \
        }                                                                                        \
        return at;                                                                               \
    }

/* Count the triangles of each node; every edge leads from one end only, without cycles. `marks` has
   a zero for each node. */
#define COUNT_TRIANGLES(NODE, NAME)                                                              \
    API int64_t NAME(const int64_t *starts, const NODE *nodes, int64_t count, int64_t *marks,    \
                     int64_t *counts, int64_t node, int64_t most) {                              \
        int64_t followed = 0;                                                                    \
        for (; node < count && followed <= most; node++) {                                       \
            int64_t mark = node + 1;                                                             \
            followed++;                                                                          \
            for (int64_t place = starts[node]; place < starts[node + 1]; place++)                \
                marks[nodes[place]] = mark;                                                      \
            for (int64_t place = starts[node]; place < starts[node + 1]; place++) {              \
                int64_t other = nodes[place];                                                    \
                followed += 1 + starts[other + 1] - starts[other];                               \
                for (int64_t corner = starts[other]; corner < starts[other + 1]; corner++) {     \
                    int64_t third = nodes[corner];                                               \
                    if (marks[third] != mark) continue;                                          \
                    counts[node]++;                                                              \
                    counts[other]++;                                                             \
                    counts[third]++;                                                             \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
        return node;                                                                             \
    }

INDEX_TEXTS(int32_t, index_texts_i32)
INDEX_TEXTS(int64_t, index_texts_i64)
FIND_TEXTS(int32_t, find_texts_i32)
FIND_TEXTS(int64_t, find_texts_i64)
GROUP_BY_KEY(int32_t, int32_t, group_by_key_k32_i32)
GROUP_BY_KEY(int32_t, int64_t, group_by_key_k32_i64)
GROUP_BY_KEY(int64_t, int32_t, group_by_key_k64_i32)
GROUP_BY_KEY(int64_t, int64_t, group_by_key_k64_i64)
COUNT_COMMON_NEIGHBOURS(int32_t, count_common_neighbours_i32)
COUNT_COMMON_NEIGHBOURS(int64_t, count_common_neighbours_i64)
SEARCH_BREADTH_FIRST(int32_t, search_breadth_first_i32)
SEARCH_BREADTH_FIRST(int64_t, search_breadth_first_i64)
JOIN_COMPONENTS(int32_t, join_components_i32)
JOIN_COMPONENTS(int64_t, join_components_i64)
CHOOSE_LABELS(int32_t, choose_labels_i32)
CHOOSE_LABELS(int64_t, choose_labels_i64)
SETTLE_NEAREST(int32_t, settle_nearest_i32)
SETTLE_NEAREST(int64_t, settle_nearest_i64)
PEEL_CORES(int32_t, peel_cores_i32)
PEEL_CORES(int64_t, peel_cores_i64)
COUNT_TRIANGLES(int32_t, count_triangles_i32)
COUNT_TRIANGLES(int64_t, count_triangles_i64)
