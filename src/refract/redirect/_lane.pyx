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

cimport cython

import sys

from refract.clicks.spool.format import (
    MAX_AGENT_BYTES,
    MAX_NETWORK_BYTES,
    MAX_REFERRER_BYTES,
    encode_frame,
)
from refract.clicks.spool.languages import MAX_HEADER_BYTES, PARAMETER, encode_language
from refract.clicks.spool.request_flags import FLAG_HEADERS, parse_flags
from refract.core.ip_addresses import FORWARDED_HEADER
from refract.redirect import visitors
from refract.redirect.rules import Fact
from refract.web.protocol import MAX_BYTES_PER_TURN, NON_PLAIN_HEADERS

if sys.byteorder != "little":
    raise ImportError("frames are little-endian")

include "clicks/spool/_crc32.pxi"

cdef enum:
    HEADER_BYTES = 27  # of a frame, before its texts
    CHECKSUM_BYTES = 4
    MAX_NAME = 32  # no header that matters has a longer name
    MAX_NAMES = 64

cdef enum HeaderCode:
    OTHER, REFUSED, FLAG, FORWARDED, CONNECTION, HOST, AGENT, REFERRER, LANGUAGE

cdef struct Slice:
    const uint8_t *begin
    Py_ssize_t size

cdef struct HeaderLine:
    int place  # in `names`, or -1
    Slice value

cdef struct PlainHead:
    Slice host, agent, referrer, language
    bint has_host, has_flags, has_forwarded

cdef Py_ssize_t max_hit = MAX_BYTES_PER_TURN
cdef Py_ssize_t max_network = MAX_NETWORK_BYTES
cdef Py_ssize_t max_agent = MAX_AGENT_BYTES
cdef Py_ssize_t max_referrer = MAX_REFERRER_BYTES
cdef Py_ssize_t max_language_header = MAX_HEADER_BYTES
cdef Py_ssize_t max_visitor_agent = visitors.MAX_AGENT_BYTES
cdef Py_ssize_t max_visitor_languages = visitors.MAX_LANGUAGE_BYTES
cdef int languages_fact = Fact.LANGUAGES
cdef int query_fact = Fact.QUERY
cdef int referrers_fact = Fact.REFERRERS
parse_parameters = visitors.parse_parameters

if (Fact.DEVICES, Fact.SYSTEMS, Fact.BROWSERS) != (0, 1, 2):
    raise ImportError("the first facts are the traits of an agent")
cdef bytes language_parameter = PARAMETER
cdef Py_ssize_t parameter_size = len(PARAMETER)

# Classes of bytes, as the parser has them.
cdef uint8_t is_token[256]
cdef uint8_t is_value[256]
cdef uint8_t is_url[256]
cdef uint8_t is_alphanumeric[256]
cdef uint8_t lower[256]

# Names of headers that matter, sorted by length. Those of length n begin at first[n].
cdef list names = []
cdef const uint8_t *name_bytes[MAX_NAMES]
cdef int name_codes[MAX_NAMES]
cdef int first[MAX_NAME + 1]


cdef fill_byte_classes():
    cdef int byte
    for byte in range(256):
        lower[byte] = byte + 32 if 65 <= byte <= 90 else byte
        is_alphanumeric[byte] = 48 <= byte <= 57 or 97 <= lower[byte] <= 122
        is_token[byte] = is_alphanumeric[byte] or byte in b"!#$%&'*+-.^_`|~"
        is_value[byte] = byte == 9 or (byte >= 32 and byte != 127)
        is_url[byte] = 33 <= byte <= 126 and byte != 35


cdef fill_names():
    cdef int length, place = 0
    codes = {name: REFUSED for name in NON_PLAIN_HEADERS}
    codes[b"proxy-connection"] = REFUSED  # some versions of the parser read it as `Connection`
    codes.update({name: FLAG for name in FLAG_HEADERS})
    codes.update({FORWARDED_HEADER: FORWARDED, b"connection": CONNECTION, b"host": HOST})
    codes.update({b"user-agent": AGENT, b"referer": REFERRER, b"accept-language": LANGUAGE})
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


fill_byte_classes()
fill_names()


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


cdef bint is_keep_alive(Slice value) noexcept nogil:
    cdef const char *word = b"keep-alive"
    cdef Py_ssize_t at
    if value.size != 10:
        return False
    for at in range(10):
        if lower[value.begin[at]] != <uint8_t>word[at]:
            return False
    return True


cdef bint read_line(const uint8_t **cursor, HeaderLine *line) noexcept nogil:
    """Read a header and move behind it. Return False if it is not a usual one.

    Every loop stops at the nul behind the bytes.
    """
    cdef const uint8_t *name = cursor[0]
    cdef const uint8_t *at = name
    while is_token[at[0]]:
        at += 1
    if at == name or at[0] != 58:  # :
        return False
    line.place = find_name(name, at - name)
    at += 1
    while at[0] == 32 or at[0] == 9:
        at += 1
    line.value.begin = at
    while is_value[at[0]]:
        at += 1
    if at[0] != 13 or at[1] != 10:
        return False
    line.value.size = at - line.value.begin
    cursor[0] = at + 2
    return True


cdef bint read_head(const uint8_t *at, const uint8_t *end, PlainHead *head) noexcept nogil:
    """Read the headers. Return False if they are not plain, or something follows them."""
    cdef HeaderLine line
    cdef int code
    head.host.size = head.agent.size = head.referrer.size = head.language.size = 0
    head.has_host = head.has_flags = head.has_forwarded = False
    while at[0] != 13:
        if not read_line(&at, &line):
            return False
        if line.place < 0:
            continue
        code = name_codes[line.place]
        if code == HOST:
            if head.has_host:
                return False
            head.has_host = True
            head.host = line.value
        elif code == AGENT:
            head.agent = line.value
        elif code == REFERRER:
            head.referrer = line.value
        elif code == LANGUAGE:
            head.language = line.value
        elif code == FLAG:
            head.has_flags = True
        elif code == FORWARDED:
            head.has_forwarded = True
        elif code != CONNECTION or not is_keep_alive(line.value):
            return False
    return at[1] == 10 and at + 2 == end and head.has_host


cdef list collect_lines(const uint8_t *at, int code):
    """Return name and value of the headers with a code, in a head that `read_head` has read."""
    cdef HeaderLine line
    cdef list found = []
    while at[0] != 13 and read_line(&at, &line):
        if line.place >= 0 and name_codes[line.place] == code:
            found.append((names[line.place], copy_slice(line.value)))
    return found


cdef bytes copy_slice(Slice value):
    if value.size == 0:
        return b""
    return PyBytes_FromStringAndSize(<const char *>value.begin, value.size)


cdef Py_ssize_t measure_language(Slice header) noexcept nogil:
    """Return how long the code is with which `de-CH,fr;q=0.9` begins; -1 if it begins otherwise.

    A language without a quality has the highest, and the first of those is preferred.
    """
    cdef Py_ssize_t at = 0, size
    while at < header.size and 97 <= lower[header.begin[at]] <= 122:
        at += 1
    size = at
    if size != 2 and size != 3:
        return -1
    while at < header.size and header.begin[at] == 45:  # -
        at += 1
        if at == header.size or not is_alphanumeric[header.begin[at]]:
            return -1
        while at < header.size and is_alphanumeric[header.begin[at]]:
            at += 1
    if at >= max_language_header or (at < header.size and header.begin[at] != 44):  # ,
        return -1
    return size


cdef bytes build_key(bytes prefix, Slice url):
    """Return the key of the cache for a URL of a domain."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(prefix)
    cdef bytes key
    if size == 0:
        return copy_slice(url)
    key = PyBytes_FromStringAndSize(NULL, size + url.size)
    memcpy(PyBytes_AS_STRING(key), PyBytes_AS_STRING(prefix), size)
    memcpy(PyBytes_AS_STRING(key) + size, url.begin, url.size)
    return key


cdef bytes build_frame(
    int kind,
    int64_t target,
    int64_t now,
    bytes network,
    Slice agent,
    Slice referrer,
    Slice language,
    bytes domain,
):
    """Return `encode_frame(…)` of a click without flags and query."""
    cdef Py_ssize_t network_size = PyBytes_GET_SIZE(network), at, total
    cdef Py_ssize_t domain_size = PyBytes_GET_SIZE(domain), campaign_size = domain_size
    cdef Py_ssize_t language_size = measure_language(language)
    cdef bytes encoded
    cdef uint32_t checksum
    cdef uint8_t *out
    cdef bytes frame
    if network_size > max_network:
        raise ValueError("an address must be anonymous before it is kept")
    for at in range(referrer.size):
        if referrer.begin[at] == 63 or referrer.begin[at] == 35:  # ? and #
            referrer.size = at
            break
    referrer.size = min(referrer.size, max_referrer)
    agent.size = min(agent.size, max_agent)
    if language_size < 0:
        encoded = encode_language(copy_slice(language)) if language.size else b""
        language_size = max(0, PyBytes_GET_SIZE(encoded) - parameter_size)
        language.begin = <const uint8_t *>PyBytes_AS_STRING(encoded) + parameter_size
    if language_size:
        campaign_size += (1 if domain_size else 0) + parameter_size + language_size
    total = HEADER_BYTES + network_size + agent.size + referrer.size + campaign_size
    total += CHECKSUM_BYTES
    frame = PyBytes_FromStringAndSize(NULL, total)
    out = <uint8_t *>PyBytes_AS_STRING(frame)
    out[0] = total & 255
    out[1] = total >> 8
    out[2] = kind
    out[3] = 0
    memcpy(out + 4, &target, 8)
    memcpy(out + 12, &now, 8)
    out[20] = network_size
    out[21] = agent.size & 255
    out[22] = agent.size >> 8
    out[23] = referrer.size & 255
    out[24] = referrer.size >> 8
    out[25] = campaign_size & 255
    out[26] = campaign_size >> 8
    out += HEADER_BYTES
    memcpy(out, PyBytes_AS_STRING(network), network_size)
    out += network_size
    if agent.size:
        memcpy(out, agent.begin, agent.size)
        out += agent.size
    if referrer.size:
        memcpy(out, referrer.begin, referrer.size)
        out += referrer.size
    if domain_size:
        memcpy(out, PyBytes_AS_STRING(domain), domain_size)
        out += domain_size
    if language_size:
        if domain_size:
            out[0] = 38  # &
            out += 1
        memcpy(out, PyBytes_AS_STRING(language_parameter), parameter_size)
        out += parameter_size
        for at in range(language_size):
            out[at] = lower[language.begin[at]]
        out += language_size
    checksum = compute_crc(<uint8_t *>PyBytes_AS_STRING(frame), total - CHECKSUM_BYTES)
    memcpy(out, &checksum, CHECKSUM_BYTES)
    return frame


@cython.final
@cython.freelist(8)
cdef class PlainVisitor:
    """A `Visitor` with a plain hit. Copies from the request what a condition asks for."""

    cdef readonly int64_t now_ns
    cdef readonly bytes network
    cdef bytes data  # keeps the slices alive
    cdef PlainHead head
    cdef Slice given_query
    cdef bytes known_agent, known_languages
    cdef object traits, parameters, agents, languages_by_header

    @property
    def country(self):
        return None

    @property
    def seed(self):
        return None

    @property
    def agent(self):
        if self.known_agent is None:
            self.known_agent = copy_start(self.head.agent, max_visitor_agent)
        return self.known_agent

    @property
    def languages(self):
        if self.known_languages is None:
            self.known_languages = copy_start(self.head.language, max_visitor_languages)
        return self.known_languages

    @property
    def referrer(self):
        return copy_slice(self.head.referrer)

    @property
    def query(self):
        return copy_slice(self.given_query)

    def get_parameters(self):
        if self.parameters is None:
            self.parameters = parse_parameters(self.query)
        return self.parameters

    cdef object choose(self, tuple compiled):
        """Return the outcome of `CachedRules.choose`."""
        self.agents, self.languages_by_header = compiled[2], compiled[3]
        for checks, outcome in <tuple>compiled[0]:
            if self.matches(<tuple>checks):
                return outcome
        return compiled[1]

    cdef bint matches(self, tuple checks) except -1:
        cdef int fact
        for check in checks:  # named tuples
            fact = (<tuple>check)[1]
            if fact < languages_fact:
                if (<tuple>self.get_traits())[fact] not in <frozenset>(<tuple>check)[2]:
                    return False
            elif fact == languages_fact:
                if (<frozenset>(<tuple>check)[2]).isdisjoint(self.languages_by_header[self.languages]):
                    return False
            elif (
                (fact == query_fact and self.given_query.size == 0)
                or (fact == referrers_fact and self.head.referrer.size == 0)
                or not (<tuple>check)[0](self)
            ):
                return False
        return True

    cdef object get_traits(self):
        if self.traits is None:
            self.traits = self.agents[self.agent]
        return self.traits


cdef bytes copy_start(Slice value, Py_ssize_t size):
    value.size = min(value.size, size)
    return copy_slice(value)


cdef class HitResponder:
    """The plain hits of one connection."""

    cdef object cache, turn, get_prefix, misses, now_ns, transport, find_network
    cdef dict paths
    cdef bytes network

    def __init__(self, shared, transport, bytes network not None, find_network):
        self.cache = shared.cache
        self.paths = shared.cache.paths
        self.turn = shared.turn
        self.get_prefix = shared.hosts.get
        self.misses = shared.misses
        self.now_ns = shared.now_ns
        self.transport = transport
        self.network = network
        self.find_network = find_network

    def answer(self, bytes data not None):
        """Queue click and response of a plain hit. Return False if it is anything else."""
        cdef const uint8_t *begin = <const uint8_t *>PyBytes_AS_STRING(data)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
        cdef const uint8_t *at = begin + 4
        cdef Slice url, query
        cdef PlainHead head
        cdef int64_t now
        cdef bytes network, origin
        cdef PlainVisitor visitor

        if size < 18 or size > max_hit or memcmp(begin, b"GET /", 5) != 0:
            return False
        while is_url[at[0]]:
            at += 1
        if begin + size - at < 13 or memcmp(at, b" HTTP/1.1\r\n", 11) != 0:
            return False
        url.begin, url.size = begin + 4, at - begin - 4
        query.begin, query.size = NULL, 0
        at += 11
        if not read_head(at, begin + size, &head):
            return False
        prefix = self.get_prefix(copy_slice(head.host))
        if prefix is None:
            return False
        entry = self.find_entry(prefix, url, &query)
        if entry is None:
            return False
        now = self.now_ns()
        if not self.may_answer(entry, now):
            return False
        response, origin, rules = entry.head, entry.domain, entry.rules
        network = self.network
        if self.find_network is not None:
            network = self.find_network(
                collect_lines(at, FORWARDED) if head.has_forwarded else ()
            )
        if rules is not None:
            visitor = PlainVisitor.__new__(PlainVisitor)
            visitor.now_ns, visitor.network, visitor.data = now, network, data
            visitor.head, visitor.given_query = head, query
            outcome = visitor.choose(rules.compiled)
            if outcome is None:
                return False
            response, origin = (<tuple>outcome)[0], (<tuple>outcome)[1]
        frame = self.encode(entry, now, at, network, origin, &head, query)
        entry.seen = True
        answers = self.turn.answers
        if answers:
            (<list>answers).append((self.transport, response))
        else:
            self.turn.add_response(self.transport, response)
        (<list>self.turn.frames).append(frame)
        return True

    cdef object find_entry(self, bytes prefix, Slice url, Slice *query):
        """Return the entry of a URL, or None. Sets the query if it is not part of the key."""
        cdef PyObject *found = PyDict_GetItem(self.paths, build_key(prefix, url))
        cdef const uint8_t *end = url.begin + url.size
        if found != NULL:
            return <object>found
        query.begin = <const uint8_t *>memchr(url.begin, 63, url.size)  # ?
        if query.begin == NULL or query.begin + 1 == end:
            return None
        url.size = query.begin - url.begin
        query.begin += 1
        query.size = end - query.begin
        found = PyDict_GetItem(self.paths, build_key(prefix, url))
        if found == NULL or (<object>found).forwards_query:
            return None
        return <object>found

    cdef bint may_answer(self, object entry, int64_t now) except -1:
        if now >= <int64_t>entry.expires_ns or now >= <int64_t>self.cache.trusted_until_ns:
            return False
        return (
            not entry.guessable
            or self.misses is None
            or now >= <int64_t>self.misses.exhausted_until_ns
        )

    cdef bytes encode(
        self,
        object entry,
        int64_t now,
        const uint8_t *lines,
        bytes network,
        bytes origin,
        PlainHead *head,
        Slice query,
    ):
        """Return the frame of the click."""
        cdef int flags = 0
        if head.has_flags:
            flags = parse_flags(dict(collect_lines(lines, FLAG)))
        if not flags and not query.size:
            return build_frame(
                entry.kind,
                entry.target,
                now,
                network,
                head.agent,
                head.referrer,
                head.language,
                origin,
            )
        return encode_frame(
            entry.kind,
            entry.target,
            now,
            flags,
            network,
            copy_slice(head.agent),
            copy_slice(head.referrer),
            copy_slice(query),
            origin,
            encode_language(copy_slice(head.language)),
        )
