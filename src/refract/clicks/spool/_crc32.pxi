# The checksum of frames. Included by `redirect/_lane.pyx` and `clicks/_frames.pyx`.

cdef uint32_t crc_table[8][256]


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
