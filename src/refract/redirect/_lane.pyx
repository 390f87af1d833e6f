# cython: language_level=3, boundscheck=False, wraparound=False, binding=False
"""`PythonHitResponder` in Cython. Its comments give the reasons; this file does the same.

Rules of privacy are not repeated here: flags, forwarded addresses and campaigns go through the
functions that the other lane uses.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memcmp, memcpy

import sys

from refract.clicks.spool.format import (
    MAX_AGENT_BYTES,
    MAX_NETWORK_BYTES,
    MAX_REFERRER_BYTES,
    encode_frame,
)
from refract.clicks.spool.request_flags import FLAG_HEADERS, parse_flags
from refract.core.ip_addresses import FORWARDED_HEADER
from refract.web.protocol import MAX_BYTES_PER_TURN, NON_PLAIN_HEADERS

if sys.byteorder != "little":
    raise ImportError("frames are little-endian")

cdef enum:
    HEADER_BYTES = 27  # of a frame, before its texts
    CHECKSUM_BYTES = 4
    MAX_NAME = 32  # no header that matters has a longer name
    MAX_NAMES = 64

cdef enum HeaderCode:
    OTHER, REFUSED, FLAG, FORWARDED, CONNECTION, HOST, AGENT, REFERRER

cdef Py_ssize_t max_hit = MAX_BYTES_PER_TURN
cdef Py_ssize_t max_network = MAX_NETWORK_BYTES
cdef Py_ssize_t max_agent = MAX_AGENT_BYTES
cdef Py_ssize_t max_referrer = MAX_REFERRER_BYTES

# Classes of bytes, as the parser has them.
cdef uint8_t is_token[256]
cdef uint8_t is_value[256]
cdef uint8_t is_url[256]
cdef uint8_t lower[256]

# Names of headers that matter, sorted by length: those of length n are names[first[n]:first[n + 1]].
cdef list names = []
cdef const uint8_t *name_bytes[MAX_NAMES]
cdef int name_codes[MAX_NAMES]
cdef int first[MAX_NAME + 1]

cdef uint32_t crc_table[8][256]


cdef fill_byte_classes():
    cdef int byte
    for byte in range(256):
        lower[byte] = byte + 32 if 65 <= byte <= 90 else byte
        is_token[byte] = (
            48 <= byte <= 57 or 97 <= lower[byte] <= 122 or byte in b"!#$%&'*+-.^_`|~"
        )
        is_value[byte] = byte == 9 or (byte >= 32 and byte != 127)
        is_url[byte] = 33 <= byte <= 126 and byte != 35


cdef fill_names():
    cdef int length, place = 0
    codes = {name: REFUSED for name in NON_PLAIN_HEADERS}
    codes[b"proxy-connection"] = REFUSED  # some versions of the parser read it as `Connection`
    codes.update({name: FLAG for name in FLAG_HEADERS})
    codes.update({FORWARDED_HEADER: FORWARDED, b"connection": CONNECTION, b"host": HOST})
    codes.update({b"user-agent": AGENT, b"referer": REFERRER})
    for length in range(MAX_NAME + 1):
        first[length] = place
        for name in sorted(codes):
            if len(name) == length:
                names.append(name)  # keeps the bytes alive
                name_bytes[place] = <const uint8_t *>PyBytes_AS_STRING(name)
                name_codes[place] = codes[name]
                place += 1
    if place != len(codes):
        raise ImportError("a header's name is too long")


cdef fill_crc_table():
    cdef int byte, bit, row
    cdef uint32_t value
    for byte in range(256):
        value = byte
        for bit in range(8):
            value = (value >> 1) ^ (0xEDB88320 if value & 1 else 0)
        crc_table[0][byte] = value
    for row in range(1, 8):
        for byte in range(256):
            value = crc_table[row - 1][byte]
            crc_table[row][byte] = (value >> 8) ^ crc_table[0][value & 255]


fill_byte_classes()
fill_names()
fill_crc_table()


cdef uint32_t compute_crc(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    """Return zlib's crc32, eight bytes at a time; so zlib's headers are not needed."""
    cdef uint32_t value = 0xFFFFFFFFu, low, high
    while size >= 8:
        memcpy(&low, data, 4)
        memcpy(&high, data + 4, 4)
        low ^= value
        value = (
            crc_table[7][low & 255]
            ^ crc_table[6][(low >> 8) & 255]
            ^ crc_table[5][(low >> 16) & 255]
            ^ crc_table[4][low >> 24]
            ^ crc_table[3][high & 255]
            ^ crc_table[2][(high >> 8) & 255]
            ^ crc_table[1][(high >> 16) & 255]
            ^ crc_table[0][high >> 24]
        )
        data += 8
        size -= 8
    while size > 0:
        value = (value >> 8) ^ crc_table[0][(value ^ data[0]) & 255]
        data += 1
        size -= 1
    return value ^ 0xFFFFFFFFu


cdef int find_name(const uint8_t *name, Py_ssize_t length) noexcept nogil:
    """Return the place of a header among those that matter, or -1."""
    cdef int place
    cdef Py_ssize_t at
    if length >= MAX_NAME:
        return -1
    for place in range(first[length], first[length + 1]):
        at = 0
        while at < length and lower[name[at]] == name_bytes[place][at]:
            at += 1
        if at == length:
            return place
    return -1


cdef bint is_keep_alive(const uint8_t *value, Py_ssize_t length) noexcept nogil:
    cdef const char *word = b"keep-alive"
    cdef Py_ssize_t at
    if length != 10:
        return False
    for at in range(10):
        if lower[value[at]] != <uint8_t>word[at]:
            return False
    return True


cdef bytes build_frame(
    int kind,
    int64_t target,
    int64_t now,
    bytes network,
    const uint8_t *agent,
    Py_ssize_t agent_size,
    const uint8_t *referrer,
    Py_ssize_t referrer_size,
):
    """Return `encode_frame(…)` of a click without flags and query."""
    cdef Py_ssize_t network_size = PyBytes_GET_SIZE(network), at, total
    cdef uint32_t checksum
    cdef uint8_t *out
    cdef bytes frame
    if network_size > max_network:
        raise ValueError("an address must be anonymous before it is kept")
    for at in range(referrer_size):
        if referrer[at] == 63 or referrer[at] == 35:  # ? and #
            referrer_size = at
            break
    referrer_size = min(referrer_size, max_referrer)
    agent_size = min(agent_size, max_agent)
    total = HEADER_BYTES + network_size + agent_size + referrer_size + CHECKSUM_BYTES
    frame = PyBytes_FromStringAndSize(NULL, total)
    out = <uint8_t *>PyBytes_AS_STRING(frame)
    out[0] = total & 255
    out[1] = total >> 8
    out[2] = kind
    out[3] = 0
    memcpy(out + 4, &target, 8)
    memcpy(out + 12, &now, 8)
    out[20] = network_size
    out[21] = agent_size & 255
    out[22] = agent_size >> 8
    out[23] = referrer_size & 255
    out[24] = referrer_size >> 8
    out[25] = out[26] = 0
    out += HEADER_BYTES
    memcpy(out, PyBytes_AS_STRING(network), network_size)
    out += network_size
    if agent_size:
        memcpy(out, agent, agent_size)
        out += agent_size
    if referrer_size:
        memcpy(out, referrer, referrer_size)
        out += referrer_size
    checksum = compute_crc(
        <const uint8_t *>PyBytes_AS_STRING(frame), total - CHECKSUM_BYTES
    )
    memcpy(out, &checksum, CHECKSUM_BYTES)
    return frame


cdef bytes copy_bytes(const uint8_t *begin, Py_ssize_t size):
    return PyBytes_FromStringAndSize(<const char *>begin, size) if size else b""


cdef class HitResponder:
    """The plain hits of one connection."""

    cdef object cache, turn, hosts, misses, now_ns, transport, find_network
    cdef dict paths
    cdef bytes network

    def __init__(self, shared, transport, bytes network not None, find_network):
        self.cache = shared.cache
        self.paths = shared.cache.paths
        self.turn = shared.turn
        self.hosts = shared.hosts
        self.misses = shared.misses
        self.now_ns = shared.now_ns
        self.transport = transport
        self.network = network
        self.find_network = find_network

    def answer(self, bytes data not None):
        """Queue click and response of a plain hit. Return False if it is anything else."""
        cdef const uint8_t *begin = <const uint8_t *>PyBytes_AS_STRING(data)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
        cdef const uint8_t *end = begin + size
        cdef const uint8_t *line
        cdef const uint8_t *value
        cdef const uint8_t *question
        cdef const uint8_t *query = NULL
        cdef const uint8_t *agent = NULL
        cdef const uint8_t *referrer = NULL
        cdef Py_ssize_t query_size = 0, agent_size = 0, referrer_size = 0, length
        cdef int64_t now
        cdef int place, code, flags = 0
        cdef PyObject *found
        cdef bytes url, host = None, network = self.network
        cdef dict flag_headers = None
        cdef list forwarded = None, answers

        # The bytes end with a nul, at which every loop below stops.
        if size < 18 or size > max_hit or memcmp(begin, b"GET /", 5) != 0:
            return False
        line = begin + 4
        while is_url[line[0]]:
            line += 1
        if end - line < 13 or memcmp(line, b" HTTP/1.1\r\n", 11) != 0:
            return False
        url = PyBytes_FromStringAndSize(<const char *>begin + 4, line - begin - 4)
        found = PyDict_GetItem(self.paths, url)
        if found == NULL:
            question = <const uint8_t *>memchr(begin + 4, 63, line - begin - 4)
            if question == NULL or question + 1 == line:
                return False
            query = question + 1
            query_size = line - query
            url = PyBytes_FromStringAndSize(<const char *>begin + 4, question - begin - 4)
            found = PyDict_GetItem(self.paths, url)
            if found == NULL:
                return False
        entry = <object>found
        if query_size and entry.forwards_query:
            return False
        line += 11

        while line[0] != 13:
            value = line
            while is_token[value[0]]:
                value += 1
            length = value - line
            if length == 0 or value[0] != 58:
                return False
            place = find_name(line, length)
            value += 1
            while value[0] == 32 or value[0] == 9:
                value += 1
            line = value
            while is_value[line[0]]:
                line += 1
            if line[0] != 13 or line[1] != 10:
                return False
            length = line - value
            line += 2
            if place < 0:
                continue
            code = name_codes[place]
            if code == HOST:
                if host is not None:
                    return False
                host = copy_bytes(value, length)
            elif code == AGENT:
                agent, agent_size = value, length
            elif code == REFERRER:
                referrer, referrer_size = value, length
            elif code == CONNECTION:
                if not is_keep_alive(value, length):
                    return False
            elif code == FLAG:
                if flag_headers is None:
                    flag_headers = {}
                flag_headers[names[place]] = copy_bytes(value, length)
            elif code == FORWARDED:
                if self.find_network is not None:
                    if forwarded is None:
                        forwarded = []
                    forwarded.append((names[place], copy_bytes(value, length)))
            else:
                return False
        if line[1] != 10 or line + 2 != end or host is None or host not in self.hosts:
            return False

        now = self.now_ns()
        if now >= <int64_t>entry.expires_ns or now >= <int64_t>self.cache.trusted_until_ns:
            return False
        if (
            entry.guessable
            and self.misses is not None
            and now < <int64_t>self.misses.exhausted_until_ns
        ):
            return False
        if flag_headers is not None:
            flags = parse_flags(flag_headers)
        if self.find_network is not None:
            network = self.find_network(forwarded or ())
        if flags or query_size:
            frame = encode_frame(
                entry.kind,
                entry.target,
                now,
                flags,
                network,
                copy_bytes(agent, agent_size),
                copy_bytes(referrer, referrer_size),
                copy_bytes(query, query_size),
            )
        else:
            frame = build_frame(
                entry.kind,
                entry.target,
                now,
                network,
                agent,
                agent_size,
                referrer,
                referrer_size,
            )
        entry.seen = True
        answers = self.turn.answers
        if answers:
            answers.append((self.transport, entry.head))
        else:
            self.turn.add_response(self.transport, entry.head)
        (<list>self.turn.frames).append(frame)
        return True
