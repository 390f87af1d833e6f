# cython: language_level=3, boundscheck=False, wraparound=False, binding=False, cdivision=True
"""`scan_frames`, `collect_days` and `PythonEventGatherer` in Cython.

Their comments give the reasons; this file does the same. Rules of privacy are not repeated here:
the facts of a click with flags are extracted in Python.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem, PyDict_SetItem
from cpython.list cimport PyList_Append
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeASCII, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import sys

from refract.clicks.spool.format import (
    CLICK_KINDS,
    MAX_FRAME_BYTES,
    MAX_NETWORK_BYTES,
    MIN_FRAME_BYTES,
    FrameScan,
    decode_click,
)

if sys.byteorder != "little":
    raise ImportError("frames are little-endian")

include "clicks/spool/_crc32.pxi"

cdef extern from *:
    """
    #define swap16(value) __builtin_bswap16(value)
    #define swap32(value) __builtin_bswap32(value)
    #define swap64(value) __builtin_bswap64(value)
    """
    uint16_t swap16(uint16_t value) nogil
    uint32_t swap32(uint32_t value) nogil
    uint64_t swap64(uint64_t value) nogil

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef enum:
    HEADER_BYTES = 27
    CHECKSUM_BYTES = 4
    ROW_BYTES = 320  # of a row, without the texts that have no fixed bound
    MAX_TEXT_BYTES = 48  # of an anonymous address or a device
    SECOND_CHARACTERS = 19
    TIME_CHARACTERS = 26
    EPOCH_2000 = 946684800  # of PostgreSQL
    SKEW_MICROSECONDS = 60000000
    DAY_SECONDS = 86400
    QUARTER_SECONDS = 900
    HASH_SIZE = 5
    BLOCK_BYTES = 128
    LINK_BYTES = 16

cdef enum RowFormat:
    VALUES, COPY, LITERALS

cdef Py_ssize_t max_frame = MAX_FRAME_BYTES
cdef Py_ssize_t min_frame = MIN_FRAME_BYTES
cdef Py_ssize_t max_network = MAX_NETWORK_BYTES
cdef int first_kind = min(CLICK_KINDS)
cdef int last_kind = max(CLICK_KINDS)
cdef object zero = 0
cdef object one = 1

cdef struct FrameHead:
    int kind, flags
    int64_t target, time_ns
    Py_ssize_t network, agent, referrer, campaign


cdef inline Py_ssize_t read_length(const uint8_t *at) noexcept nogil:
    return at[0] | at[1] << 8


cdef inline void read_head(const uint8_t *at, FrameHead *head) noexcept nogil:
    head.kind = at[2]
    head.flags = at[3]
    memcpy(&head.target, at + 4, 8)
    memcpy(&head.time_ns, at + 12, 8)
    head.network = at[20]
    head.agent = at[21] | at[22] << 8
    head.referrer = at[23] | at[24] << 8
    head.campaign = at[25] | at[26] << 8


cdef bint is_valid(const uint8_t *at, Py_ssize_t length) noexcept nogil:
    cdef FrameHead head
    cdef uint32_t checksum
    memcpy(&checksum, at + length - CHECKSUM_BYTES, CHECKSUM_BYTES)
    if compute_crc(at, length - CHECKSUM_BYTES) != checksum:
        return False
    read_head(at, &head)
    return (
        min_frame + head.network + head.agent + head.referrer + head.campaign == length
        and first_kind <= head.kind <= last_kind
    )


def scan_frames(bytes data not None, Py_ssize_t limit):
    """Return how far whole, valid frames reach from the beginning of `data`."""
    cdef const uint8_t *begin = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data), at = 0, length, clicks = 0
    cdef bint broken = False
    with nogil:
        while clicks < limit and size - at >= 2:
            length = read_length(begin + at)
            if length < min_frame or length > max_frame:
                broken = True
                break
            if size - at < length:
                break
            if not is_valid(begin + at, length):
                broken = True
                break
            at += length
            clicks += 1
    return FrameScan(clicks, at, broken)


cdef inline int64_t to_microseconds(int64_t time_ns, int64_t received) noexcept nogil:
    cdef int64_t at = time_ns // 1000
    return received if at > received + SKEW_MICROSECONDS or time_ns < 0 else at


def collect_days(bytes frames not None, int64_t received):
    """Return the UTC days these clicks are counted in."""
    cdef const uint8_t *at = <const uint8_t *>PyBytes_AS_STRING(frames)
    cdef const uint8_t *end = at + PyBytes_GET_SIZE(frames)
    cdef int64_t second, day = -1, time_ns
    cdef set days = set()
    while at < end:
        memcpy(&time_ns, at + 12, 8)
        second = to_microseconds(time_ns, received) // 1000000
        if second - second % DAY_SECONDS != day:
            day = second - second % DAY_SECONDS
            days.add(day)
        at += read_length(at)
    return days


# blake2b with a key, as in hashlib: a hash costs a sixth of a call there.

cdef uint64_t[8] IV
IV[:] = [
    0x6A09E667F3BCC908u, 0xBB67AE8584CAA73Bu, 0x3C6EF372FE94F82Bu, 0xA54FF53A5F1D36F1u,
    0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu, 0x1F83D9ABFB41BD6Bu, 0x5BE0CD19137E2179u,
]
cdef uint8_t[12][16] SIGMA
SIGMA[0][:] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
SIGMA[1][:] = [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3]
SIGMA[2][:] = [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4]
SIGMA[3][:] = [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8]
SIGMA[4][:] = [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13]
SIGMA[5][:] = [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9]
SIGMA[6][:] = [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11]
SIGMA[7][:] = [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10]
SIGMA[8][:] = [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5]
SIGMA[9][:] = [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0]
SIGMA[10][:] = SIGMA[0]
SIGMA[11][:] = SIGMA[1]


cdef inline uint64_t rotate(uint64_t value, int bits) noexcept nogil:
    return value >> bits | value << (64 - bits)


cdef inline void mix(
    uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y
) noexcept nogil:
    v[a] += v[b] + x
    v[d] = rotate(v[d] ^ v[a], 32)
    v[c] += v[d]
    v[b] = rotate(v[b] ^ v[c], 24)
    v[a] += v[b] + y
    v[d] = rotate(v[d] ^ v[a], 16)
    v[c] += v[d]
    v[b] = rotate(v[b] ^ v[c], 63)


cdef void compress(
    uint64_t *state, const uint8_t *block, uint64_t counted, bint is_last
) noexcept nogil:
    cdef uint64_t[16] v
    cdef uint64_t[16] m
    cdef const uint8_t *s
    cdef int number
    memcpy(m, block, BLOCK_BYTES)
    memcpy(v, state, 64)
    for number in range(8):
        v[8 + number] = IV[number]
    v[12] ^= counted
    if is_last:
        v[14] = ~v[14]
    for number in range(12):
        s = SIGMA[number]
        mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]])
        mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]])
        mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]])
        mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]])
        mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]])
        mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]])
        mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]])
        mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]])
    for number in range(8):
        state[number] ^= v[number] ^ v[8 + number]


cdef class SaltedHash:
    """The hash of visitors with the salt of a day, which is its key."""

    cdef uint64_t[8] keyed

    def __init__(self, bytes salt not None):
        cdef uint8_t[BLOCK_BYTES] block
        cdef Py_ssize_t size = PyBytes_GET_SIZE(salt)
        if not 1 <= size <= 64:
            raise ValueError("a salt has 1 to 64 bytes")
        memset(block, 0, BLOCK_BYTES)
        memcpy(block, PyBytes_AS_STRING(salt), size)
        memcpy(self.keyed, IV, 64)
        self.keyed[0] ^= 0x01010000u ^ <uint64_t>(size << 8) ^ HASH_SIZE
        compress(self.keyed, block, BLOCK_BYTES, False)

    cdef bytes hash_visitor(self, const uint8_t *network, Py_ssize_t size, bytes key):
        """Return the hash of network and key together. The key is not empty."""
        cdef const uint8_t *agent = <const uint8_t *>PyBytes_AS_STRING(key)
        cdef Py_ssize_t agent_size = PyBytes_GET_SIZE(key)
        cdef uint64_t[8] state
        cdef uint8_t[BLOCK_BYTES] block
        cdef Py_ssize_t filled = size, taken, done = BLOCK_BYTES
        memcpy(state, self.keyed, 64)
        if size:
            memcpy(block, network, size)
        while True:
            taken = min(agent_size, BLOCK_BYTES - filled)
            memcpy(block + filled, agent, taken)
            filled += taken
            done += filled
            agent += taken
            agent_size -= taken
            if not agent_size:
                break
            compress(state, block, done, False)
            filled = 0
        memset(block + filled, 0, BLOCK_BYTES - filled)
        compress(state, block, done, True)
        return PyBytes_FromStringAndSize(<const char *>state, HASH_SIZE)


cdef class ClickTally:
    """The same as `RollupDelta`."""

    cdef public int64_t people, bots, private, uniques, last
    cdef public list visitors
    cdef public dict parts
    cdef public object sketch

    def __cinit__(self):
        self.visitors = []
        self.parts = {}


# The values of a row that are no Python objects.
cdef struct RowFacts:
    int64_t place, second, micro, target
    int kind
    bint bot, private


cdef inline uint8_t *put16(uint8_t *out, uint16_t value) noexcept nogil:
    value = swap16(value)
    memcpy(out, &value, 2)
    return out + 2


cdef inline uint8_t *put32(uint8_t *out, uint32_t value) noexcept nogil:
    value = swap32(value)
    memcpy(out, &value, 4)
    return out + 4


cdef inline uint8_t *put64(uint8_t *out, uint64_t value) noexcept nogil:
    value = swap64(value)
    memcpy(out, &value, 8)
    return out + 8


cdef inline uint8_t *put_text(uint8_t *out, const char *text, Py_ssize_t size) noexcept nogil:
    memcpy(out, text, size)
    return out + size


cdef inline uint8_t *put_bytes(uint8_t *out, bytes data) noexcept:
    return put_text(out, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef inline uint8_t *put_comma(uint8_t *out) noexcept nogil:
    out[0] = 44
    return out + 1


cdef uint8_t *put_number(uint8_t *out, int64_t value) noexcept nogil:
    """Write a number in decimal."""
    cdef char[20] digits
    cdef int size = 0
    cdef uint64_t rest = <uint64_t>value
    if value < 0:
        out[0] = 45  # -
        out += 1
        rest = 0 - rest
    while True:
        digits[size] = 48 + <char>(rest % 10)
        size += 1
        rest = rest // 10
        if not rest:
            break
    while size:
        size -= 1
        out[0] = digits[size]
        out += 1
    return out


cdef uint8_t *put_field(uint8_t *out, object value) except NULL:
    """Write a number or NULL as a field of a binary COPY."""
    if value is None:
        return put32(out, 0xFFFFFFFFu)
    return put64(put32(out, 8), <uint64_t><int64_t>value)


cdef uint8_t *put_text_field(uint8_t *out, object value) except NULL:
    """Write a short text or NULL as a field of a binary COPY."""
    cdef Py_ssize_t size
    cdef const char *text
    if value is None:
        return put32(out, 0xFFFFFFFFu)
    text = PyUnicode_AsUTF8AndSize(value, &size)
    if size > MAX_TEXT_BYTES:
        raise ValueError("the text is too long")
    return put_text(put32(out, <uint32_t>size), text, size)


cdef uint8_t *put_text_literal(uint8_t *out, object value) except NULL:
    """Write a short text without special characters, or NULL, as a literal."""
    cdef Py_ssize_t size
    cdef const char *text
    if value is None:
        return put_text(out, b"NULL", 4)
    text = PyUnicode_AsUTF8AndSize(value, &size)
    if size > MAX_TEXT_BYTES:
        raise ValueError("the text is too long")
    return put_text(put_text(put_text(out, b"'", 1), text, size), b"'", 1)


cdef uint8_t *put_literal(uint8_t *out, object value) except NULL:
    """Write a number or NULL as a literal."""
    if value is None:
        return put_text(out, b"NULL", 4)
    return put_number(out, value)


cdef int count_keys(dict counts, tuple keys) except -1:
    """Add one to the count of each key."""
    cdef PyObject *found
    for key in keys:
        found = PyDict_GetItem(counts, key)
        PyDict_SetItem(counts, key, one if found == NULL else <object>found + 1)
    return 0


# Breakdowns as they are stored: an object of JSON with numbers as values.

def add_counts(dict into not None, dict more not None):
    """Add breakdowns to others, leaving `more` unchanged."""
    cdef PyObject *found
    for key, clicks in more.items():
        found = PyDict_GetItem(into, key)
        PyDict_SetItem(into, key, clicks if found == NULL else <object>found + clicks)


def encode_json(dict counts not None):
    """Return counts as JSON; None if there are none or a key must be escaped."""
    cdef Py_ssize_t room = 2, size, at
    cdef const char *text
    cdef bytes written
    cdef uint8_t *out
    cdef uint8_t *begin
    if not counts:
        return None
    for key in counts:
        text = PyUnicode_AsUTF8AndSize(key, &size)
        for at in range(size):
            if 0 <= text[at] < 32 or text[at] == 34 or text[at] == 92:  # " and \
                return None
        room += size + 24  # quotes, colon, comma and up to 20 characters of a number
    written = PyBytes_FromStringAndSize(NULL, room)
    begin = out = <uint8_t *>PyBytes_AS_STRING(written)
    for key, clicks in counts.items():
        out[0] = 44 if out != begin else 123  # , or {
        out[1] = 34  # "
        text = PyUnicode_AsUTF8AndSize(key, &size)
        out = put_text(out + 2, text, size)
        out = put_number(put_text(out, b'":', 2), clicks)
    out[0] = 125  # }
    return written[: out - begin + 1]


def decode_json(bytes data not None):
    """Return the counts of `encode_json`; None if they are written in any other way."""
    cdef const char *at = PyBytes_AS_STRING(data)
    cdef const char *end = at + PyBytes_GET_SIZE(data)
    cdef const char *text
    cdef int64_t clicks
    cdef int digits
    cdef dict counts = {}
    # Every loop stops at the nul behind the bytes.
    while at[0] == (44 if counts else 123) and at[1] == 34:  # , or {, and "
        text = at = at + 2
        while at[0] != 34 and at[0] != 92 and at[0] != 0:
            at += 1
        if at[0] != 34 or at[1] != 58:  # " and :
            return None
        key = PyUnicode_DecodeUTF8(text, at - text, NULL)
        at += 2
        clicks = digits = 0
        while 48 <= at[0] <= 57 and digits < 18:
            clicks = clicks * 10 + at[0] - 48
            digits += 1
            at += 1
        if not digits:
            return None
        counts[key] = clicks
    return counts if counts and at[0] == 125 and at + 1 == end else None


# The visitors of a sketch: hashes of five bytes, sorted as numbers.

cdef void sort_hashes(uint64_t *hashes, uint64_t *sorted_hashes, Py_ssize_t count) noexcept nogil:
    """Sort by the first byte, then each hash among its neighbours: they are spread evenly."""
    cdef Py_ssize_t[256] ends
    cdef Py_ssize_t at, place
    memset(ends, 0, sizeof(ends))
    for at in range(count):
        ends[hashes[at] >> 32] += 1
    for at in range(1, 256):
        ends[at] += ends[at - 1]
    for at in range(count):
        ends[hashes[at] >> 32] -= 1
        sorted_hashes[ends[hashes[at] >> 32]] = hashes[at]
    for at in range(1, count):
        place = at
        hashes[0] = sorted_hashes[at]
        while place > 0 and sorted_hashes[place - 1] > hashes[0]:
            sorted_hashes[place] = sorted_hashes[place - 1]
            place -= 1
        sorted_hashes[place] = hashes[0]


def encode_visitors(visitors not None):
    """Return the stored sketch of few visitors."""
    cdef Py_ssize_t count = len(visitors), at = 0, place
    cdef uint64_t number
    cdef const uint8_t *digits
    cdef bytes written = PyBytes_FromStringAndSize(NULL, 1 + count * 5)
    cdef uint8_t *out = <uint8_t *>PyBytes_AS_STRING(written)
    cdef uint64_t *hashes = <uint64_t *>PyMem_Malloc((2 * count + 1) * sizeof(uint64_t))
    if hashes == NULL:
        raise MemoryError
    try:
        for visitor in visitors:
            if type(visitor) is not bytes or PyBytes_GET_SIZE(visitor) != 5 or at == count:
                raise ValueError("a visitor's hash has five bytes")
            digits = <const uint8_t *>PyBytes_AS_STRING(visitor)
            number = 0
            for place in range(5):
                number = number << 8 | digits[place]
            hashes[at] = number
            at += 1
        if at != count:
            raise ValueError("visitors changed while they were read")
        sort_hashes(hashes, hashes + count, count)
        out[0] = 0
        for at in range(count):
            for place in range(5):
                out[1 + at * 5 + place] = hashes[count + at] >> (32 - 8 * place) & 255
    finally:
        PyMem_Free(hashes)
    return written


# The links of groups: records of an id and its clicks.

cdef struct LinkSum:
    int64_t link_id, clicks


cdef inline bint is_before(LinkSum one, LinkSum other) noexcept nogil:
    return one.clicks > other.clicks or (
        one.clicks == other.clicks and one.link_id < other.link_id
    )


cdef void add_links(
    LinkSum *sums, int bits, const uint8_t *at, const uint8_t *end
) noexcept nogil:
    """Add the records of a section to a hash table, which has room."""
    cdef int64_t link_id, clicks
    cdef uint64_t place
    while end - at >= LINK_BYTES:
        memcpy(&link_id, at, 8)
        memcpy(&clicks, at + 8, 8)
        at += LINK_BYTES
        if not link_id:  # others
            continue
        place = <uint64_t>link_id * 0x9E3779B97F4A7C15u >> (64 - bits)
        while sums[place].link_id and sums[place].link_id != link_id:
            place = (place + 1) & ((<uint64_t>1 << bits) - 1)
        sums[place].link_id = link_id
        sums[place].clicks += clicks


cdef Py_ssize_t choose_links(
    const LinkSum *sums, Py_ssize_t size, LinkSum *best, Py_ssize_t limit
) noexcept nogil:
    """Write the most clicked links to `best`, in order; return how many there are."""
    cdef Py_ssize_t number, at, found = 0
    for number in range(size):
        if not sums[number].link_id:
            continue
        if found < limit:
            at = found
            found += 1
        elif limit and is_before(sums[number], best[limit - 1]):
            at = limit - 1
        else:
            continue
        while at and is_before(sums[number], best[at - 1]):
            best[at] = best[at - 1]
            at -= 1
        best[at] = sums[number]
    return found


def rank_links(list sections not None, Py_ssize_t limit):
    """Return the most clicked of all links in these sections, with their clicks; ties by id."""
    cdef Py_ssize_t records = 0, found, number
    cdef int bits = 4
    cdef const uint8_t *data
    cdef bytes section
    cdef LinkSum *sums = NULL
    cdef LinkSum *best = NULL
    for section in sections:
        records += PyBytes_GET_SIZE(section) // LINK_BYTES
    while (<Py_ssize_t>1 << bits) < 2 * records:
        bits += 1
    limit = max(0, min(limit, records))
    try:
        sums = <LinkSum *>PyMem_Calloc(<size_t>1 << bits, sizeof(LinkSum))
        best = <LinkSum *>PyMem_Calloc(limit + 1, sizeof(LinkSum))
        if sums == NULL or best == NULL:
            raise MemoryError
        for section in sections:
            data = <const uint8_t *>PyBytes_AS_STRING(section)
            add_links(sums, bits, data, data + PyBytes_GET_SIZE(section))
        with nogil:
            found = choose_links(sums, <Py_ssize_t>1 << bits, best, limit)
        return [(best[number].link_id, best[number].clicks) for number in range(found)]
    finally:
        PyMem_Free(sums)
        PyMem_Free(best)


cdef class EventGatherer:
    """`PythonEventGatherer`, compiled."""

    cdef readonly dict tallies
    cdef object extractor, format_second, agents, networks, referrers, campaigns
    cdef dict periods, targets
    cdef int64_t period_start, second
    cdef int period_kind
    cdef char[SECOND_CHARACTERS] second_text
    # Of the current batch:
    cdef bytes frames, prefix, node_field
    cdef object spool_id, segment, node
    cdef tuple node_keys
    cdef Py_ssize_t at
    cdef int64_t base, received, day
    cdef dict salts, hashes
    cdef SaltedHash salted
    cdef RowFormat format

    def __init__(self, extractor, format_second):
        self.extractor = extractor
        self.agents, self.networks = extractor.agents, extractor.networks
        self.referrers, self.campaigns = extractor.referrers, extractor.campaigns
        self.format_second = format_second
        self.tallies, self.periods, self.hashes = {}, {}, {}
        self.period_kind = self.period_start = self.second = -1
        self.frames = b""

    def begin_batch(
        self, shape, bytes frames not None, int64_t base, int64_t received, dict salts not None
    ):
        """Take the clicks of these frames, which are whole and valid, from now on."""
        self.format = (
            VALUES
            if shape.dialect == "sqlite"
            else COPY if shape.dialect == "postgresql" else LITERALS
        )
        self.prefix, self.node_field = shape.prefix, shape.node_field
        self.node_keys = shape.node_keys
        self.spool_id, self.segment, self.node = shape.spool_id, shape.segment, shape.node
        self.frames, self.base, self.received, self.at = frames, base, received, 0
        self.salts, self.hashes, self.day = salts, {}, -1

    def add_clicks(self, list rows not None, Py_ssize_t limit):
        """Add the next clicks to rows and tallies; return whether there are more."""
        cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(self.frames)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(self.frames), clicks = 0
        cdef Py_ssize_t widest = (
            ROW_BYTES + PyBytes_GET_SIZE(self.prefix) + PyBytes_GET_SIZE(self.node_field)
        )
        cdef uint8_t *buffer = NULL
        cdef uint8_t *out
        if self.format != VALUES:
            limit = min(limit, (size - self.at) // min_frame)
            buffer = <uint8_t *>PyMem_Malloc(max(1, limit * widest))
            if buffer == NULL:
                raise MemoryError
        out = buffer
        try:
            while self.at < size and clicks < limit:
                out = self.add_click(rows, data + self.at, out)
                self.at += read_length(data + self.at)
                clicks += 1
            if out != buffer:
                rows.append(PyBytes_FromStringAndSize(<const char *>buffer, out - buffer))
        finally:
            PyMem_Free(buffer)
        return self.at < size

    cdef uint8_t *add_click(self, list rows, const uint8_t *frame, uint8_t *out) except? NULL:
        """Add a click; return where its row ends."""
        cdef FrameHead head
        cdef const uint8_t *texts = frame + HEADER_BYTES
        cdef RowFacts row
        cdef int64_t at
        cdef object target
        cdef tuple agent, network, referrer, campaign
        cdef ClickTally tally

        read_head(frame, &head)
        at = to_microseconds(head.time_ns, self.received)
        row.place = self.base + self.at
        row.second, row.micro = at // 1000000, at % 1000000
        row.kind, row.target = head.kind, head.target
        target = head.target
        if head.flags or head.network > max_network:
            return self.add_flagged_click(rows, frame, out, row, target)
        network = self.find(self.networks, texts, head.network)
        texts += head.network
        agent = self.find(self.agents, texts, head.agent)
        texts += head.agent
        referrer = self.find(self.referrers, texts, head.referrer)
        texts += head.referrer
        campaign = self.find(self.campaigns, texts, head.campaign)
        row.bot, row.private = agent[3], False
        out = self.put_row(
            rows, out, row, target, network[0], agent[2], agent[0], network[1], referrer[0],
            campaign[0],
        )
        tally = self.get_tally(target, row)
        tally.last = max(tally.last, at)
        if row.bot:
            tally.bots += 1
            return out
        tally.people += 1
        tally.visitors.append(
            self.get_salted(row.second).hash_visitor(
                frame + HEADER_BYTES, head.network, agent[1]
            )
        )
        count_keys(tally.parts, agent[4])
        count_keys(tally.parts, network[2])
        count_keys(tally.parts, referrer[1])
        count_keys(tally.parts, campaign[1])
        count_keys(tally.parts, self.node_keys)
        return out

    cdef uint8_t *add_flagged_click(
        self, list rows, const uint8_t *frame, uint8_t *out, RowFacts row, object target
    ) except? NULL:
        """Add an unusual click, whose facts are extracted in Python: above all a private one."""
        cdef ClickTally tally = self.get_tally(target, row)
        click = decode_click(self.frames, self.at, self.base)
        values, bot, private, keys, visitor = self.extractor.extract_facts(click)
        row.bot, row.private = bot, private
        out = self.put_row(
            rows, out, row, target, values[4], values[5], values[6], values[7], values[8], values[9]
        )
        tally.last = max(tally.last, row.second * 1000000 + row.micro)
        if bot:
            tally.bots += 1
            return out
        tally.people += 1
        if private:
            tally.private += 1
            return out
        tally.visitors.append(self.get_salted(row.second).hash_visitor(NULL, 0, visitor))
        count_keys(tally.parts, keys)
        count_keys(tally.parts, self.node_keys)
        return out

    cdef tuple find(self, object cache, const uint8_t *text, Py_ssize_t size):
        """Return the facts of a text from a cache, which loads what it does not have."""
        cdef bytes key = PyBytes_FromStringAndSize(<const char *>text, size)
        cdef PyObject *found = PyDict_GetItem(cache, key)
        if found != NULL:
            return <tuple>found
        return cache[key]

    cdef ClickTally get_tally(self, object target, RowFacts row):
        cdef int64_t start = row.second - row.second % QUARTER_SECONDS
        cdef PyObject *found
        cdef ClickTally tally
        if start != self.period_start or row.kind != self.period_kind:
            self.period_start, self.period_kind = start, row.kind
            self.targets = self.periods.setdefault((row.kind, start), {})
        found = PyDict_GetItem(self.targets, target)
        if found != NULL:
            return <ClickTally>found
        tally = ClickTally()
        self.targets[target] = self.tallies[target, row.kind, start] = tally
        return tally

    cdef SaltedHash get_salted(self, int64_t second):
        cdef int64_t day = second - second % DAY_SECONDS
        if day != self.day:
            if day not in self.hashes:
                self.hashes[day] = SaltedHash(self.salts[day])
            self.day, self.salted = day, self.hashes[day]
        return self.salted

    cdef uint8_t *put_row(
        self, list rows, uint8_t *out, RowFacts row, object target, object network, object device,
        object agent_id, object geo_id, object referrer_id, object campaign_id,
    ) except? NULL:
        """Add a row to `rows` as values, or write it behind `out`; return where it ends."""
        if self.format == VALUES:
            for value in (
                self.spool_id, self.segment, row.place, self.format_time(row), self.node, row.kind,
                target, one if row.bot else zero, one if row.private else zero, network, device,
                agent_id, geo_id, referrer_id, campaign_id,
            ):
                PyList_Append(rows, value)
            return out
        return (
            self.put_fields(out, row, network, device, agent_id, geo_id, referrer_id, campaign_id)
            if self.format == COPY
            else self.put_literals(
                out, row, network, device, agent_id, geo_id, referrer_id, campaign_id
            )
        )

    cdef uint8_t *put_fields(
        self, uint8_t *out, RowFacts row, object network, object device, object agent_id,
        object geo_id, object referrer_id, object campaign_id,
    ) except NULL:
        """Write a row of a binary COPY."""
        cdef int64_t at = (row.second - EPOCH_2000) * 1000000 + row.micro
        out = put_bytes(out, self.prefix)
        out = put32(put32(out, 4), <uint32_t>row.place)
        out = put64(put32(out, 8), <uint64_t>at)
        out = put_bytes(out, self.node_field)
        out = put16(put32(out, 2), row.kind)
        out = put64(put32(out, 8), <uint64_t>row.target)
        out = put32(out, 1)
        out[0] = row.bot
        out = put32(out + 1, 1)
        out[0] = row.private
        out = put_text_field(out + 1, network)
        out = put_text_field(out, device)
        out = put_field(out, agent_id)
        out = put_field(out, geo_id)
        out = put_field(out, referrer_id)
        return put_field(out, campaign_id)

    cdef uint8_t *put_literals(
        self, uint8_t *out, RowFacts row, object network, object device, object agent_id,
        object geo_id, object referrer_id, object campaign_id,
    ) except NULL:
        """Write a row of a statement, and a comma."""
        out = put_bytes(out, self.prefix)
        out = put_number(out, row.place)
        out = put_text(out, b",'", 2)
        out = self.put_time(out, row)
        out = put_text(out, b"',", 2)
        out = put_bytes(out, self.node_field)
        out = put_number(put_comma(out), row.kind)
        out = put_number(put_comma(out), row.target)
        out = put_number(put_comma(out), row.bot)
        out = put_number(put_comma(out), row.private)
        out = put_text_literal(put_comma(out), network)
        out = put_text_literal(put_comma(out), device)
        out = put_literal(put_comma(out), agent_id)
        out = put_literal(put_comma(out), geo_id)
        out = put_literal(put_comma(out), referrer_id)
        out = put_literal(put_comma(out), campaign_id)
        return put_text(out, b"),", 2)

    cdef str format_time(self, RowFacts row):
        cdef uint8_t[TIME_CHARACTERS] text
        self.put_time(text, row)
        return PyUnicode_DecodeASCII(<const char *>text, TIME_CHARACTERS, NULL)

    cdef uint8_t *put_time(self, uint8_t *out, RowFacts row) except NULL:
        """Write a time with microseconds, as `2026-06-01 12:00:00.000000`."""
        cdef bytes text
        cdef int place
        cdef int64_t rest = row.micro
        if row.second != self.second:
            text = self.format_second(row.second).encode("ascii")
            if PyBytes_GET_SIZE(text) != SECOND_CHARACTERS:
                raise ValueError("a time has 19 characters")
            memcpy(self.second_text, PyBytes_AS_STRING(text), SECOND_CHARACTERS)
            self.second = row.second
        memcpy(out, self.second_text, SECOND_CHARACTERS)
        out[SECOND_CHARACTERS] = 46  # .
        for place in range(TIME_CHARACTERS - 1, SECOND_CHARACTERS, -1):
            out[place] = 48 + <uint8_t>(rest % 10)
            rest = rest // 10
        return out + TIME_CHARACTERS
